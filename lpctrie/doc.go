// Package lpctrie is Linux's IPv4 route lookup in Go: a level-compressed trie
// that has, node by node, the shape of the kernel's for the same history of
// changes, and read-only forms compiled from it that are several times faster.
//
//	t := lpctrie.New[string](lpctrie.Config{})
//	t.Insert(netip.MustParsePrefix("10.0.0.0/8"), "wide")
//	t.Insert(netip.MustParsePrefix("10.1.0.0/16"), "narrow")
//	v, prefix, ok := t.Lookup(netip.MustParseAddr("10.1.2.3")) // narrow 10.1.0.0/16 true
//	s := t.Compile()                                           // immutable
//	v, ok = s.Lookup(netip.MustParseAddr("10.9.9.9"))          // wide true
//
// There are three forms of a table:
//
//   - [Table] is the trie. It does all that the kernel does: several routes per
//     prefix told apart by table, TOS, priority, type, scope and value, the
//     netlink flags Excl, Create, Replace and Append, deletion with
//     wildcards, and it shows itself as /proc/net/fib_trie and fib_triestat
//     ([Table.WriteFibTrie], [Stats.Triestat]). [Table.Trace] explains a lookup.
//   - [Snapshot] is compiled from a table or a list of prefixes, immutable, a few
//     bytes per route. It can be written to a file, and a file that is mapped
//     into memory is used where it lies, but for tables in front that are copied
//     ([Open]). It has lookups in batches that overlap their waits for memory.
//   - [Live] is a table that changes while any number of readers look up
//     without locks, each change becoming visible at once and whole.
//
// # When to use it
//
// Use it where the answer has to be Linux's: simulators, checkers of routers,
// several routes per prefix by TOS and priority, the shape that
// /proc/net/fib_trie shows. Use a [Snapshot] where a table is looked up far more
// often than it changes. For a mutable table from prefixes to values, with both
// families in one type, unions and overlaps, persistent copies and a large body
// of users, take github.com/gaissmai/bart; its plain Table is the right first
// choice for access lists and the like. github.com/kentik/patricia keeps many
// tags per prefix, netipds has persistent sets. To ask or change the running
// kernel's table, use netlink (github.com/vishvananda/netlink): this package
// never touches the kernel. For forwarding in C, DPDK has rte_fib. IPv6 is
// package radix6.
//
// Lookups in snapshots use unsafe, and batches on amd64 a little assembly, which
// asks for memory ahead. The build tag purego leaves both out, with the same
// answers.
//
// # Units and byte order
//
// Prefixes are netip.Prefix and must not have host bits. Where an address is a
// uint32 it is in host order: 1.2.3.4 is 0x01020304 (see [KeyOf]). A suffix
// length is 32 minus the prefix length. IPv4-mapped IPv6 addresses
// (::ffff:1.2.3.4) are IPv6 and match nothing here unless the caller unmaps
// them. Serialised snapshots are little-endian everywhere.
//
// # Errors
//
// Changes fail with [ErrPrefix], [ErrExist], [ErrNotExist] or [ErrFull];
// readers of text with a *[LineError] that has the number of the line;
// reading a serialised snapshot with [ErrSnapshot]. Compare with errors.Is and
// errors.As. A change that fails has changed nothing. No input makes anything
// panic.
//
// # Concurrency
//
// A [Table] may be read by any number of goroutines while none changes it; it
// does not notice misuse. A [Snapshot] and a [View] never change. A [Live] may be
// used by all at any time.
//
// # Specifications
//
//   - S. Nilsson, G. Karlsson, "IP-Address Lookup Using LC-Tries", IEEE Journal
//     on Selected Areas in Communications 17(6), 1999
//   - S. Nilsson, M. Tikkanen, "An Experimental Study of Compression Methods
//     for Dynamic Tries", Algorithmica 33(1), 2002
//   - The running Linux kernel, 6.1 to 6.18: /proc/net/fib_trie,
//     /proc/net/fib_triestat and the answers of "ip route get", against which
//     the tests compare
package lpctrie
