package guest

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"signalbox.example/internal/need"
)

// Run boots a kernel with the package's test binary as init and waits for its
// tests. Each becomes a subtest of t. The whole output is logged when
// something failed, or under -v.
func Run(t *testing.T, k Kernel, c Config) Result {
	t.Helper()
	need.Asked(t, Feature)
	if runtime.GOARCH != "amd64" {
		need.Missing(t, Feature, "the guest kernels are for amd64")
	}
	need.Commands(t, Feature, "go")
	if c.MemoryMB == 0 {
		c.MemoryMB = 512
	}
	if c.Timeout == 0 {
		c.Timeout = 3 * time.Minute
	}
	if c.Package == "" {
		c.Package = "."
	}
	work := t.TempDir()
	bin := filepath.Join(work, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	init := filepath.Join(work, "init")
	build(t, "test", "-c", "-o", init, c.Package)
	for _, p := range c.Commands {
		build(t, "build", "-o", bin+"/", p)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	shards := c.Shards
	if len(shards) == 0 {
		shards = []Shard{{}}
	}
	var cmds []*exec.Cmd
	for i, s := range shards {
		own := filepath.Join(work, strconv.Itoa(i))
		if err := os.Mkdir(own, 0o755); err != nil {
			t.Fatal(err)
		}
		o := orders{Tests: cmp.Or(s.Run, c.Tests), Skip: s.Skip, Env: c.Env, Timeout: c.Timeout, UML: k == UML, All: c.AllModules}
		if k == UML {
			o.Dir, o.Path = dir, bin+":/usr/sbin:/usr/bin:/sbin:/bin"
			cmds = append(cmds, umlCommand(t, c, &o, own, init))
		} else {
			o.Path = "/bin:/usr/sbin:/usr/bin:/sbin"
			cmds = append(cmds, qemuCommand(t, k, c, &o, own, init, bin))
		}
	}
	results, errs := make([]Result, len(cmds)), make([]error, len(cmds))
	var wait sync.WaitGroup
	for i, cmd := range cmds {
		wait.Go(func() { results[i], errs[i] = boot(t, cmd, c.Timeout) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		need.Missing(t, Feature, err.Error())
	}
	r := join(results)
	report(t, k, r, len(results))
	return r
}

// join makes one result of those of guests that ran at the same time.
func join(results []Result) Result {
	all := Result{Tests: map[string]string{}}
	for _, r := range results {
		all.Output += r.Output
		maps.Copy(all.Tests, r.Tests)
		all.Boot, all.Total = max(all.Boot, r.Boot), max(all.Total, r.Total)
	}
	return all
}

func build(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// modules resolves the wanted modules against a module folder and returns
// their paths relative to it.
func modules(t *testing.T, dir string, wanted []string) []string {
	t.Helper()
	x, err := readModuleIndex(dir)
	if err != nil {
		need.Missing(t, Feature, err.Error())
	}
	paths, missing := x.resolve(wanted)
	if len(missing) > 0 {
		t.Logf("the kernel has no module (perhaps built in): %s", strings.Join(missing, " "))
	}
	return paths
}

func umlCommand(t *testing.T, c Config, o *orders, work, init string) *exec.Cmd {
	t.Helper()
	if _, err := os.Stat(umlBinary); err != nil {
		need.Missing(t, Feature, "needs Debian's package user-mode-linux")
	}
	dir, err := modulesOf(umlTree)
	if err != nil {
		need.Missing(t, Feature, err.Error())
	}
	o.Bind = dir
	for _, p := range modules(t, dir, c.Modules) {
		o.Modules = append(o.Modules, filepath.Join(dir, p))
	}
	file := filepath.Join(work, "orders.json")
	writeOrders(t, file, o)
	cmd := exec.Command(umlBinary, fmt.Sprintf("mem=%dM", c.MemoryMB), "rootfstype=hostfs", "rootflags=/", "ro",
		"init="+init, "con0=fd:0,fd:1", "con=null", "quiet", "uml_dir="+work, orderVar+"="+file)
	cmd.Env = append(os.Environ(), "TMPDIR="+work)
	return cmd
}

func qemuCommand(t *testing.T, k Kernel, c Config, o *orders, work, init, bin string) *exec.Cmd {
	t.Helper()
	qemu := need.Commands(t, Feature, "qemu-system-x86_64")[0]
	kernel, err := filepath.Glob(filepath.Join(k.tree(), "boot", "vmlinuz-*"))
	if err != nil || len(kernel) == 0 {
		need.Missing(t, Feature, "no Debian kernel for "+k.String()+": run .ci/kernels.sh")
	}
	dir, err := modulesOf(filepath.Join(k.tree(), "lib", "modules"))
	if err != nil {
		need.Missing(t, Feature, err.Error())
	}
	image := filepath.Join(work, "initramfs")
	f, err := os.Create(image)
	if err != nil {
		t.Fatal(err)
	}
	buf := bufio.NewWriter(f)
	a := &archive{w: buf}
	for _, d := range []string{"proc", "sys", "dev", "run", "tmp", "etc", "root"} {
		a.dir(d)
	}
	a.file("init", init)
	for _, p := range modules(t, dir, c.Modules) {
		name := filepath.Join("/modules", p)
		a.file(name, filepath.Join(dir, p))
		o.Modules = append(o.Modules, name)
	}
	built, err := os.ReadDir(bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range built {
		a.file("/bin/"+e.Name(), filepath.Join(bin, e.Name()))
	}
	carried := map[string]bool{}
	for _, p := range need.Commands(t, Feature, c.Programs...) {
		for _, f := range append([]string{p}, libraries(t, p)...) {
			if !carried[f] {
				carried[f] = true
				a.file(f, f)
			}
		}
	}
	for name, host := range c.Files {
		a.file(name, host)
	}
	a.bytes("/orders.json", marshalOrders(t, o))
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	if err := buf.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return exec.Command(qemu, "-M", "pc", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", fmt.Sprint(c.MemoryMB),
		"-display", "none", "-serial", "stdio", "-monitor", "none", "-no-reboot", "-nic", "none",
		"-kernel", kernel[len(kernel)-1], "-initrd", image,
		"-append", "console=ttyS0 panic=-1 quiet "+orderVar+"=/orders.json")
}

func marshalOrders(t *testing.T, o *orders) []byte {
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func writeOrders(t *testing.T, file string, o *orders) {
	if err := os.WriteFile(file, marshalOrders(t, o), 0o644); err != nil {
		t.Fatal(err)
	}
}

// libraries lists the shared libraries of a program, nil for a static one.
func libraries(t *testing.T, program string) []string {
	out, err := exec.Command("ldd", program).CombinedOutput()
	if err != nil {
		return nil
	}
	var libs []string
	for line := range strings.Lines(string(out)) {
		for _, f := range strings.Fields(line) {
			if strings.HasPrefix(f, "/") {
				libs = append(libs, f)
			}
		}
	}
	return libs
}

// boot runs the guest and collects what it prints. The guest's whole process
// group is killed at the end, at the time limit and when this process dies.
func boot(t *testing.T, cmd *exec.Cmd, limit time.Duration) (Result, error) {
	t.Helper()
	// The death signal is tied to the thread that starts the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	read, write, err := os.Pipe()
	if err != nil {
		return Result{}, err
	}
	defer read.Close()
	cmd.Stdout, cmd.Stderr = write, write
	begin := time.Now()
	err = cmd.Start()
	write.Close()
	if err != nil {
		return Result{}, err
	}
	kill := func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	timer := time.AfterFunc(limit, kill)
	r := Result{Tests: map[string]string{}}
	var out bytes.Buffer
	ended := false
	s := bufio.NewScanner(read)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := strings.Trim(s.Text(), "\r")
		out.WriteString(line + "\n")
		switch {
		case strings.Contains(line, bootLine) && r.Boot == 0:
			r.Boot = time.Since(begin)
		case strings.Contains(line, exitLine):
			ended = true
		}
		if m := verdict.FindStringSubmatch(line); m != nil {
			r.Tests[m[2]] = m[1]
		}
		if ended {
			break
		}
	}
	// Give the machine a moment to power off by itself.
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
	}
	kill()
	<-done
	timedOut := !timer.Stop() && !ended
	r.Output, r.Total = out.String(), time.Since(begin)
	if !ended {
		why := "ended before its tests did"
		if timedOut {
			why = fmt.Sprintf("did not end within %v", limit)
		}
		t.Errorf("the guest %s", why)
	}
	return r, nil
}

var verdict = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+)`)

func report(t *testing.T, k Kernel, r Result, guests int) {
	t.Helper()
	names := make([]string, 0, len(r.Tests))
	for n := range r.Tests {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		t.Run(n, func(t *testing.T) {
			switch r.Tests[n] {
			case "FAIL":
				t.Error("failed in the guest")
			case "SKIP":
				t.Skip("skipped in the guest")
			}
		})
	}
	if len(names) == 0 && !t.Failed() {
		t.Error("no test ran in the guest")
	}
	if strings.Count(r.Output, exitLine+"0") != guests && !t.Failed() {
		t.Error("the guest's test binary ended with a failure")
	}
	t.Logf("%s: init after %.1f s, all in %.1f s", k, r.Boot.Seconds(), r.Total.Seconds())
	if t.Failed() || testing.Verbose() {
		t.Logf("the guest printed:\n%s", r.Output)
	}
}
