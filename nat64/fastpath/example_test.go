package fastpath_test

import (
	"fmt"

	"signalbox.example/nat64"
	"signalbox.example/nat64/fastpath"
)

// The program can be looked at without privilege or kernel.
func ExampleProgram() {
	prefix, err := nat64.ParsePrefix("64:ff9b::/96")
	if err != nil {
		fmt.Println(err)
		return
	}
	ins, err := fastpath.Program(fastpath.FromTranslator(nat64.Config{Prefix: prefix}))
	fmt.Println(len(ins) > 300, err)
	// Output: true <nil>
}

// Attach a translator to the interfaces of both sides; what is not simple
// still needs the TUN device of package tun.
func ExampleAttach() {
	var t *nat64.Translator // from nat64.New
	serve := func() error {
		if err := fastpath.Supported(); err != nil {
			return err // it says why; all goes through the TUN device
		}
		l, err := fastpath.Attach(t, fastpath.Options{Interfaces: []string{"lan0", "wan0"}})
		if err != nil {
			return err
		}
		defer l.Close()
		s := l.Stats()
		fmt.Println(s.Packets64, s.Packets46, s.Punted[fastpath.PuntFragment])
		return nil
	}
	_ = serve
}
