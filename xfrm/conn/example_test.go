package conn_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"os"
	"syscall"
	"time"

	"signalbox.example/xfrm"
	"signalbox.example/xfrm/conn"
)

// Print the policies of the kernel as ip xfrm does. It needs CAP_NET_ADMIN.
func ExampleConn_Policies() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := conn.Dial(nil)
	if err != nil {
		log.Fatal(err) // wraps errors.ErrUnsupported where there is no XFRM
	}
	defer c.Close()
	for p, err := range c.Policies(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(p)
	}
}

// Load many policies with few system calls and learn of each that failed.
func ExampleBatch() {
	ctx := context.Background()
	c, err := conn.Dial(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	b := c.Batch()
	for i := range 1000 {
		net := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
		p := xfrm.Policy{
			Sel: xfrm.Selector{Src: netip.MustParsePrefix("192.0.2.0/24"), Dst: net}, Dir: xfrm.Out,
			Templates: []xfrm.Template{{Proto: xfrm.ESP, Mode: xfrm.Transport, ReqID: uint32(i + 1)}},
		}
		if err := b.AddPolicy(&p); err != nil {
			log.Fatal(err) // it breaks a rule, and names it
		}
	}
	failures, err := b.Flush(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range failures {
		if !errors.Is(f.Err, syscall.EEXIST) {
			fmt.Println("policy", f.Index, f.Err)
		}
	}
}

// Make the kernel hold the policies of a file, as `ip xfrm policy` prints them,
// and leave states alone.
func ExampleConn_Apply() {
	f, err := os.Open("policies.txt")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	var want xfrm.Set
	for p, err := range xfrm.ParsePolicies(f, nil) {
		if err != nil {
			log.Fatal(err) // names the line
		}
		want.Policies = append(want.Policies, p)
	}
	ctx := context.Background()
	c, err := conn.Dial(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	changes, failures, err := c.Apply(ctx, want, conn.ApplyOptions{
		IgnoreStates: true,
		OwnPolicy:    func(p *xfrm.Policy) bool { return p.Priority == 4000 }, // others' are never deleted
	}, false)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(changes), "changes")
	for _, f := range failures {
		fmt.Println(changes[f.Index].Op, changes[f.Index].Policy.Sel.Dst, f.Err)
	}
}

// Follow what happens to states and policies until the context ends.
func ExampleListen() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	events, err := conn.Listen(ctx, nil, xfrm.GroupAcquire, xfrm.GroupExpire)
	if err != nil {
		log.Fatal(err)
	}
	for e, err := range events {
		if err != nil {
			log.Print(err)
			continue
		}
		switch e := e.(type) {
		case *xfrm.Acquire:
			fmt.Println("a state is wanted:", e.Src, e.Dst, e.Proto)
		case *xfrm.Expire:
			fmt.Println("a state expires:", e.SA.Dst, e.Hard)
		}
	}
}
