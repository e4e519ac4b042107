//go:build !linux

// Command tunbed measures translators in network namespaces, on Linux only.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "tunbed: needs Linux's network namespaces")
	os.Exit(1)
}
