package routes

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// OnThread runs f on a thread of its own.
func OnThread(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f()
}

// ThreadTime returns the CPU time of the calling thread.
func ThreadTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}
