//go:build !linux

package main

import "errors"

func dropPrivileges(name string, keep bool) error {
	if name != "" {
		return errors.New("-user: works on Linux only")
	}
	return nil
}
