//go:build !linux

package routes

import "time"

var begin = time.Now()

// OnThread runs f.
func OnThread(f func()) { f() }

// ThreadTime returns the time since the start of the program: where there is
// no clock per thread, measure on a quiet machine.
func ThreadTime() time.Duration { return time.Since(begin) }
