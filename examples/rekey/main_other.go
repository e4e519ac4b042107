//go:build !linux

// Command rekey needs Linux.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "rekey: XFRM is a part of Linux")
	os.Exit(1)
}
