//go:build !unix

package demod

import "time"

// cpuTime returns wall time where processor time is not to be had.
func cpuTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
