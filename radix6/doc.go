// Package radix6 is Linux's IPv6 route lookup: the kernel's radix tree with
// its backtracking, its source-specific routes and its path MTU and redirect
// exceptions, in Go and without a kernel. Tests hold it against the running
// kernel: the number of nodes, the order of the dump, the answer to every
// query, the life of exceptions.
//
//	tree := radix6.New[string](radix6.SourceLinux)
//	err := tree.Add(radix6.Route{
//		Prefix: netip.MustParsePrefix("2001:db8::/32"),
//		From:   netip.MustParsePrefix("2001:db8:a::/48"), // source-specific
//		Metric: radix6.DefaultMetric,
//	}, "eth0", radix6.ModeAdd)
//	...
//	dev, route, ok := tree.LookupFrom(dst, src)
//
// A plain table of prefixes needs less:
//
//	var tree radix6.Tree[int]
//	err := tree.Insert(netip.MustParsePrefix("2001:db8::/32"), 1)
//	v, prefix, ok := tree.Lookup(netip.MustParseAddr("2001:db8::1"))
//
// [Tree.Trace] tells why an address matched, node by node. [Tree.Stats]
// describes the tree as the kernel does. [Tree.LookupFunc] lets the caller
// reject routes, which the lookup then passes over as the kernel passes over
// dead next hops. [Cache] keeps what the network says of single destinations.
// [ReadBatch], [ReadPrefixes] and [ReadProcRoute] load tables from text.
//
// # Snapshots and live tables
//
// [Tree.Compile] makes a [Snapshot]: immutable, about 14 bytes per route of an
// Internet table, several times faster than the tree, and with
// [Snapshot.LookupBatch] and [Snapshot.LookupCodes] for many addresses at
// once, whose waits for memory overlap. [Compile] makes one from prefixes
// without a tree. [Snapshot.Encode] and [Open] keep it in a file that many
// processes can share. A [Live] is a table that changes while others read it,
// without locks; a [View] of it is one consistent moment.
//
//	s := tree.Compile()
//	dev, ok := s.Lookup(dst)
//
// Lookups in snapshots use unsafe, and on amd64 a little assembly, for processors
// with POPCNT and for those with AVX-512. The build tag purego leaves both out,
// with the same answers.
//
// # Source-specific routes
//
// Linux does not choose "the longest destination, then the longest source,
// else the generic route". Once a destination has any source-specific route,
// its generic routes are invisible to packets from sources that match none of
// them, and the lookup goes on with shorter destinations; only ::/0 is exempt.
// [SourceLinux] does that, [SourceDraft] does what the drafts say.
// [SourceOff], the mode of a zero [Tree], refuses routes with a source rather
// than ignore it.
//
// Where a lookup is given no source, it is the unspecified address, ::, as in
// "ip route get" without "from"; a route from ::/1 matches it.
//
// One flaw of Linux (seen in 6.18) is left out on purpose. When the generic
// route of a prefix with source-specific routes is deleted while there are
// longer prefixes inside it, the kernel's node forgets how long its prefix is,
// and its sources are found only inside the first longer prefix until that is
// deleted too. Here the answer never depends on the table's past.
//
// # Exceptions
//
// [Cache] follows Linux since 4.15. Two things differ. The kernel's gc_thresh
// counts all entries of its route cache, sockets' included; here only
// exceptions exist. And the kernel rounds its timer to whole seconds.
//
// # When to use it
//
// Use it for what only Linux's table has: source-specific routes as Linux
// chooses them, backtracking, exceptions with their timers, and the reasons for
// an answer; and a [Snapshot] for large tables that are looked up far more often
// than they change. For plain prefixes to values with many changes, overlaps, or
// IPv4 and IPv6 in one table, take github.com/gaissmai/bart, which has more
// operations on prefixes and more users; it has no source-specific routes. To
// ask or change the running kernel, use netlink
// (github.com/vishvananda/netlink). To learn routes from neighbours, BIRD, FRR
// or GoBGP. IPv4 is package lpctrie.
//
// # Units and byte order
//
// Addresses and prefixes are those of net/netip; an address as two words
// (LookupKey, KeyOf) has its first byte on top of the first word. IPv4-mapped
// addresses (::ffff:10.0.0.1) are IPv6 addresses; IPv4 addresses match nothing.
// The zone of an address is ignored: it names a link, and Linux looks up the
// address. Metrics are numbers, the lowest wins. MTUs are in bytes, headers
// included. Serialised snapshots are little-endian everywhere.
//
// # Errors
//
// Errors begin with "radix6: ". Branch on the Err variables with errors.Is;
// [*RouteError] adds the route, [*LineError] the number and text of a line. A
// lookup that finds nothing returns false, not an error. A change that fails has
// changed nothing. No input makes anything panic, with one exception: a snapshot
// of more than about 25 million routes cannot be compiled.
//
// # Concurrency
//
// A [Tree] may be read by any number of goroutines while none changes it. A
// [Cache] and its tree belong to one goroutine at a time. A [Snapshot] and a
// [View] never change. A [Live] may be used by all at any time.
//
// # Specifications
//
//  1. RFC 4291: IPv6 addresses and prefixes
//  2. RFC 8201: path MTU discovery, RFC 8200 section 5: the least MTU
//  3. RFC 4861 section 8: redirects
//  4. draft-ietf-rtgwg-dst-src-routing: destination/source routing
//  5. RFC 8678: networks with several providers
//  6. rtnetlink(7), ip-route(8): the modes of adding a route, batch files
//  7. Sklower, A Tree-Based Packet Routing Table for Berkeley UNIX, 1991
package radix6
