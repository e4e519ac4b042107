//go:build !linux

// Command nullspeed needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "nullspeed: XFRM is a part of Linux")
	os.Exit(1)
}
