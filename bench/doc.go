// Package bench holds the comparisons of the signalbox libraries with their
// peers. It is a module of its own so that no peer becomes a dependency of
// the libraries.
package bench
