package lpctrie

import (
	"math/rand/v2"
	"net/netip"

	"signalbox.example/lpctrie"
)

// Within returns a random address inside a prefix.
func Within(r *rand.Rand, p netip.Prefix) netip.Addr {
	key, _ := lpctrie.KeyOf(p.Addr())
	return lpctrie.AddrOf(key | uint32(uint64(r.Uint32())>>p.Bits()))
}

// Cold is the number of addresses that no cache can hold the routes of.
const Cold = 1 << 20

// Hot is a number of addresses whose routes fit the first-level caches.
const Hot = 1024

// Addresses returns n addresses, uniform over the prefixes.
func Addresses(ps []netip.Prefix, n int, seed uint64) []netip.Addr {
	r := rand.New(rand.NewPCG(seed, 77))
	out := make([]netip.Addr, n)
	for i := range out {
		out[i] = Within(r, ps[r.IntN(len(ps))])
	}
	return out
}

// Shuffled returns the prefixes in random order.
func Shuffled(ps []netip.Prefix, seed uint64) []netip.Prefix {
	out := append([]netip.Prefix(nil), ps...)
	rand.New(rand.NewPCG(seed, 78)).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
