//go:build !linux

// Command vpn needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "vpn: XFRM is a part of Linux")
	os.Exit(1)
}
