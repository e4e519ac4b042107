//go:build !linux

// Package netns makes network namespaces, on Linux only.
package netns
