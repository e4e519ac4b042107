package xfrm

import "strconv"

// Errno is an error number of the kernel that answered.
type Errno uintptr

func (e Errno) Error() string { return "errno " + strconv.Itoa(int(e)) }
