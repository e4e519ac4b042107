// Package radix6 is Linux's IPv6 route lookup in Go.
package radix6
