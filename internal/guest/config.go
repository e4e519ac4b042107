package guest

import (
	"os"
	"path/filepath"
	"time"
)

// Feature is the word that asks for guest tests in SIGNALBOX_RUN and
// SIGNALBOX_REQUIRE.
const Feature = "guest"

// A Kernel is one of the kernels that a guest can boot.
type Kernel int

// The kernels.
const (
	UML Kernel = iota
	Debian61
	Debian612
)

// String returns a short name such as "qemu-6.12".
func (k Kernel) String() string {
	switch k {
	case UML:
		return "uml-6.1"
	case Debian61:
		return "qemu-6.1"
	}
	return "qemu-6.12"
}

// Config says what runs in a guest. Only Tests or Shards is needed.
type Config struct {
	// Tests is the pattern of the tests that run in the guest, as for
	// go test -run.
	Tests string
	// Shards, if there are any, share the tests out: a guest, which has one
	// processor, boots for each of them, all at the same time, and what they
	// report is joined.
	Shards []Shard
	// Package is the Go package whose test binary becomes init; default is
	// the package in the current folder.
	Package string
	// Modules names the kernel modules to load, in any order, without ".ko";
	// what they depend on is loaded first. A name that ends in "/*" stands
	// for all modules of a folder below the kernel's module folder, such as
	// "crypto/*". A module that does not exist or does not load is reported
	// in the guest's output and passed over.
	Modules []string
	// AllModules promises that Modules names all that the tests need, so that
	// the kernel need not start modprobe, which takes user-mode Linux a second
	// for each algorithm.
	AllModules bool
	// Commands are Go main packages that are built and put in the guest's
	// PATH under the last element of their import path.
	Commands []string
	// Programs are programs of the host that are put in the guest, with the
	// libraries they are linked to.
	Programs []string
	// Files are further files for a qemu guest, by their path in the guest.
	// (A UML guest sees all of the host's files.)
	Files map[string]string
	// Env is added to the environment of the guest's tests, as KEY=VALUE.
	Env []string
	// MemoryMB is the guest's memory; 512 by default.
	MemoryMB int
	// Timeout bounds the whole run; 3 minutes by default.
	Timeout time.Duration
}

// A Shard is a part of the tests: those that match Run, or Config.Tests if
// that is empty, and do not match Skip, unless that is empty.
type Shard struct{ Run, Skip string }

// A Result is what a guest reported.
type Result struct {
	// Output is all that the guest printed, line ends normalised.
	Output string
	// Tests holds the verdict ("PASS", "FAIL" or "SKIP") of each test and
	// subtest that ended, by name.
	Tests map[string]string
	// Boot is the time from the start to the first line of init, Total that
	// of the whole run.
	Boot, Total time.Duration
}

// orders is what init finds in the file named by the variable orderVar.
type orders struct {
	Tests   string
	Skip    string
	Dir     string // working folder, "" for /
	Path    string // PATH
	Env     []string
	Modules []string // files in load order
	UML     bool
	All     bool   // no modprobe
	Bind    string // UML: folder to show as /lib/modules/RELEASE
	Timeout time.Duration
}

const (
	orderVar  = "SIGNALBOX_GUEST"
	bootLine  = "signalbox-guest: init"
	exitLine  = "signalbox-guest: exit "
	umlBinary = "/usr/bin/linux.uml"
	umlTree   = "/usr/lib/uml/modules"
)

// tree returns the folder that .ci/kernels.sh filled for a Debian kernel.
func (k Kernel) tree() string {
	dir := os.Getenv("SIGNALBOX_GUESTS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			cache = "/root/.cache"
		}
		dir = filepath.Join(cache, "signalbox", "guests")
	}
	if k == Debian61 {
		return filepath.Join(dir, "6.1")
	}
	return filepath.Join(dir, "6.12")
}
