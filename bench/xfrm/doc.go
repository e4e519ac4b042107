//go:build !linux

// Package xfrm measures signalbox's xfrm beside vishvananda/netlink and
// iproute2, which are programs for Linux.
package xfrm
