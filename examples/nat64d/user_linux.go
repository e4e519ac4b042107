package main

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// dropPrivileges makes the process run as a user. With keep it retains what
// the fast path needs to follow a new configuration: CAP_BPF and
// CAP_NET_ADMIN.
func dropPrivileges(name string, keep bool) error {
	if name == "" {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return fmt.Errorf("-user: %w", err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("-user %s: %w", name, err)
	}
	if keep {
		// Capabilities belong to threads, so each must be told.
		if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_KEEPCAPS, 1, 0); errno != 0 {
			return fmt.Errorf("-user with the fast path needs a build with CGO_ENABLED=0 (or -fastpath off): %w", errno)
		}
	}
	for _, err := range []error{syscall.Setgroups([]int{gid}), syscall.Setresgid(gid, gid, gid), syscall.Setresuid(uid, uid, uid)} {
		if err != nil {
			return fmt.Errorf("-user %s: %w", name, err)
		}
	}
	if !keep {
		return nil
	}
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var c [2]unix.CapUserData
	for _, n := range []int{unix.CAP_NET_ADMIN, unix.CAP_BPF} {
		c[n/32].Permitted |= 1 << (n % 32)
		c[n/32].Effective |= 1 << (n % 32)
	}
	// The kernel reads both during the call only.
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&h)), uintptr(unsafe.Pointer(&c[0])), 0); errno != 0 {
		return fmt.Errorf("-user %s: capset: %w", name, errno)
	}
	return nil
}
