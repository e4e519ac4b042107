package guest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Main is for TestMain. On a host it runs the tests as usual. As the first
// process of a guest it sets the machine up, runs the tests it was told to
// run, prints their results and powers the machine off. It does not return.
func Main(m *testing.M) {
	file := os.Getenv(orderVar)
	if os.Getpid() != 1 || file == "" {
		os.Exit(m.Run())
	}
	fmt.Println(bootLine)
	code := 1
	if o, err := setUp(file); err != nil {
		fmt.Println("signalbox-guest:", err)
	} else {
		os.Args = []string{os.Args[0], "-test.v", "-test.run=" + o.Tests, "-test.timeout=" + o.Timeout.String()}
		if o.Skip != "" {
			os.Args = append(os.Args, "-test.skip="+o.Skip)
		}
		code = m.Run()
	}
	fmt.Printf("%s%d\n", exitLine, code)
	unix.Sync()
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {}
}

// Inside skips the test unless it runs in a guest.
func Inside(t testing.TB) {
	t.Helper()
	if os.Getenv(orderVar) == "" {
		t.Skip("runs in a guest only, started by an integration test of this package")
	}
}

// Release returns the running kernel's release, such as "6.12.1-cloud-amd64".
func Release() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

func setUp(file string) (o orders, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return o, err
	}
	for _, mnt := range []struct{ fs, dir string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/run"},
	} {
		if err := unix.Mount(mnt.fs, mnt.dir, mnt.fs, 0, ""); err != nil && err != unix.EBUSY {
			fmt.Printf("signalbox-guest: mount %s: %v\n", mnt.dir, err)
		}
	}
	for _, d := range []string{"/run/tmp", "/run/netns"} {
		os.MkdirAll(d, 0o1777)
	}
	os.Setenv("PATH", o.Path)
	os.Setenv("HOME", "/run/tmp")
	os.Setenv("TMPDIR", "/run/tmp")
	for _, kv := range o.Env {
		k, v, _ := strings.Cut(kv, "=")
		os.Setenv(k, v)
	}
	if o.Bind != "" {
		bindModules(o.Bind)
	}
	for _, p := range o.Modules {
		if err := load(p); err != nil && err != unix.EEXIST {
			fmt.Printf("signalbox-guest: module %s: %v\n", moduleName(p), err)
		}
	}
	if o.All {
		os.WriteFile("/proc/sys/kernel/modprobe", []byte("\n"), 0o644)
	}
	if o.Dir != "" {
		err = os.Chdir(o.Dir)
	}
	loopbackUp()
	return o, err
}

// bindModules shows a UML module folder where modprobe looks for it.
func bindModules(dir string) {
	if unix.Mount("tmpfs", "/lib/modules", "tmpfs", 0, "") != nil {
		return
	}
	at := filepath.Join("/lib/modules", Release())
	if os.MkdirAll(at, 0o755) == nil {
		unix.Mount(dir, at, "", unix.MS_BIND, "")
	}
}

func load(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	flags := 0
	if strings.HasSuffix(path, ".xz") || strings.HasSuffix(path, ".zst") {
		flags = unix.MODULE_INIT_COMPRESSED_FILE
	}
	return unix.FinitModule(int(f.Fd()), "", flags)
}

// loopbackUp sets IFF_UP on lo, which a fresh kernel leaves down.
func loopbackUp() {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(s)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	unix.IoctlIfreq(s, syscall.SIOCSIFFLAGS, ifr)
}
