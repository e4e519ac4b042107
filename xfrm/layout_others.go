//go:build !386

package xfrm

const tailPad = 0
