module signalbox.example/examples/hardware/piv

go 1.26.0

require signalbox.example v0.0.0

require (
	github.com/ProtonMail/go-crypto v1.5.2 // indirect
	github.com/cloudflare/circl v1.6.3 // indirect
	github.com/go-piv/piv-go/v2 v2.6.0
	golang.org/x/crypto v0.59.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/term v0.48.0 // indirect
)

replace signalbox.example => ../../..
