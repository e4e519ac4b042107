module signalbox.example

go 1.26.0

require (
	github.com/ProtonMail/go-crypto v1.5.2
	github.com/cilium/ebpf v0.22.0
	github.com/google/gopacket v1.1.19
	github.com/miekg/dns v1.1.73
	github.com/vishvananda/netlink v1.3.1
	golang.org/x/crypto v0.59.0
	golang.org/x/net v0.62.0
	golang.org/x/sys v0.50.0
	golang.org/x/term v0.48.0
	golang.org/x/text v0.44.0
)

require (
	github.com/cloudflare/circl v1.6.3 // indirect
	github.com/rogpeppe/go-internal v1.16.0 // indirect
	github.com/vishvananda/netns v0.0.5 // indirect
)
