// Package xfrmguest holds the tests that prove package xfrm on packets: ESP
// flows, interfaces and Mobile IPv6 inside guest kernels, because few running
// kernels have all of IPsec. It contains tests only.
package xfrmguest
