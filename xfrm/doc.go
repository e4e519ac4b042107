// Package xfrm speaks Linux's IPsec netlink protocol.
package xfrm
