// Package conn carries the messages of package xfrm to a Linux kernel and
// back.
//
//	c, err := conn.Dial(nil)
//	if err != nil { ... }
//	defer c.Close()
//	for p, err := range c.Policies(ctx) {
//		if err != nil { ... }
//		fmt.Print(p)
//	}
//
// [Conn.Batch] sends many requests with few system calls and still tells
// which of them failed and why; [Conn.Apply] makes a kernel hold a wanted set
// of states and policies by the least number of messages, in an order that
// leaves no gap; [Listen] receives events.
//
// Requests that add or update are checked first by the rules of package xfrm,
// see [Options.Unchecked]. Everything needs CAP_NET_ADMIN in the network
// namespace. The package builds on every system; Dial fails with
// [errors.ErrUnsupported] where there is no XFRM.
//
// # Units and byte order
//
// Values are those of package xfrm: host order, seconds, octets. What a method
// is handed stays the caller's and may be changed when it returns; what it
// returns belongs to the caller, except where it says otherwise. States that
// come from the kernel hold keys: see [xfrm.SA.ClearKeys]. The buffers of a
// connection are cleared of them.
//
// # Errors
//
// A refusal of the kernel is an [*xfrm.AckError] with its errno, the text of
// its extended acknowledgement and the attribute that it points at;
// errors.Is(err, syscall.EEXIST) works. What exists already is EEXIST; a state
// that does not exist is ESRCH, a policy ENOENT. A value that breaks a rule is
// an [*xfrm.RuleError] or [*xfrm.FormatError], and nothing was sent. [ErrLost]
// tells of a receive buffer that overflowed. A dump that changes interrupt is
// repeated; [ErrInterrupted] tells that they did in each of five tries. Errors
// hold no key material.
//
// # Concurrency
//
// A [Conn] may be used by several goroutines; requests wait for each other.
// The sequences that it returns have to be consumed by one goroutine each. A
// [Batch] belongs to one goroutine. Cancelling a context ends waiting at
// once; the kernel may have carried out the request all the same.
//
// # Specifications
//
//   - netlink(7), RFC 3549
//   - the XFRM user API of Linux, see package xfrm
package conn
