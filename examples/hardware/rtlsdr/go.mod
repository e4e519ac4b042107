module signalbox.example/examples/hardware/rtlsdr

go 1.26.0

require (
	github.com/samuel/go-rtlsdr v0.0.0-20240910171540-c9d8c8ee48fb
	signalbox.example v0.0.0
)

replace signalbox.example => ../../..
