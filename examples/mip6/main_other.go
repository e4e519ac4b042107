//go:build !linux

// Command mip6 needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "mip6: XFRM is a part of Linux")
	os.Exit(1)
}
