//go:build !unix

package main

import "os"

// Signals that nobody sends here: an empty list would mean all of them.
var (
	reloadSignals = []os.Signal{noSignal{}}
	statsSignals  = []os.Signal{noSignal{}}
)

type noSignal struct{}

func (noSignal) String() string { return "none" }
func (noSignal) Signal()        {}
