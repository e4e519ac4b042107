// Package signalbox is the root of seven independent libraries. It holds no
// code of its own; import the package you need:
//
//   - [signalbox.example/modes]: Mode S and ADS-B, from IQ samples to aircraft
//   - [signalbox.example/nat64]: stateless IPv4/IPv6 translation of packets
//   - [signalbox.example/lpctrie]: Linux's IPv4 route lookup structure
//   - [signalbox.example/radix6]: Linux's IPv6 route lookup structure
//   - [signalbox.example/xfrm]: Linux IPsec (XFRM) netlink messages
//   - [signalbox.example/openpgpdns]: OpenPGP keys in WKD and DNS
//   - [signalbox.example/keycard]: OpenPGP cards without cgo
//
// No package imports another. Packages below them, such as nat64/tun, xfrm/conn
// and keycard/pgp, import their parent and may need more: a kernel, a daemon,
// another module. A program that imports the parent alone gets none of that.
// The programs under examples/ and the measurements under bench/ are the only
// places where the seven meet.
package signalbox
