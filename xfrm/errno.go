//go:build !plan9

package xfrm

import "syscall"

// Errno is an error number of the kernel that answered. Its text and its
// equality with the constants of package syscall hold where the program runs
// on the same system.
type Errno = syscall.Errno
