package xfrmguest

import ("os";"testing";"signalbox.example/internal/guest")

func TestIntegrationDev(t *testing.T) {
	c := config(os.Getenv("DEVTESTS"))
	if os.Getenv("DEVCMD") == "" { c.Commands = nil }
	k := guest.UML
	if os.Getenv("DEVK") == "q" { k = guest.Debian612 }
	guest.Run(t, k, c)
}
