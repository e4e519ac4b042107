// Package guest runs a Go test binary as the init process of a small virtual
// machine, so that tests can use a kernel with features that the running one
// lacks. It needs no hardware support: a guest is either user-mode Linux or
// qemu with software emulation.
//
//	UML        Debian's user-mode-linux 6.1: boots in about 2 s, sees the
//	           host's file tree read-only
//	Debian61   Debian's 6.1 cloud kernel under qemu: boots in about 6 s
//	Debian612  Debian's 6.12 cloud kernel under qemu: boots in about 10 s
//
// A package that wants it hands its TestMain over and writes two kinds of
// tests:
//
//	func TestMain(m *testing.M) { guest.Main(m) }
//
//	func TestIntegrationGuest(t *testing.T) { // on the host
//		guest.Run(t, guest.UML, guest.Config{
//			Tests:   "^TestInGuest",
//			Modules: []string{"esp4", "crypto/*"},
//		})
//	}
//
//	func TestInGuestPing(t *testing.T) { // in the guest
//		guest.Inside(t)
//		...
//	}
//
// [Run] builds the calling package's test binary without cgo, boots the
// kernel with it as init, and reports each test of the guest as a subtest of
// the host's test. The guest ends when its tests end, or is killed at the
// time limit. Nothing it starts outlives the call.
//
// The guest has /proc, /sys, /dev, a writable /run and a temporary folder;
// loopback is up. Under qemu its file tree holds only what [Config] names.
// Tests skip, or fail when SIGNALBOX_REQUIRE lists "guest", where the kernels
// are missing: UML comes from Debian's package user-mode-linux, the others are
// put in place by .ci/kernels.sh (folder $SIGNALBOX_GUESTS, by default
// ~/.cache/signalbox/guests).
package guest
