// Package examples_test holds all examples to the same conduct on a command
// line.
package examples_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"signalbox.example/internal/need"
)

// Help goes to standard output with status 0; misuse is told in one line that
// begins with the program's name, with status 2 and nothing on standard
// output. Every program has a package comment and a test.
func TestIntegrationCommandLines(t *testing.T) {
	need.Asked(t, "examples")
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin+"/", "./...").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	programs, err := os.ReadDir(bin)
	if err != nil || len(programs) < 30 {
		t.Fatalf("%d programs, %v", len(programs), err)
	}
	for _, p := range programs {
		name := strings.TrimSuffix(p.Name(), ".exe")
		t.Run(name, func(t *testing.T) {
			run := func(args ...string) (status int, out, errs string) {
				t.Helper()
				var o, e bytes.Buffer
				cmd := exec.CommandContext(t.Context(), filepath.Join(bin, p.Name()), args...)
				cmd.Stdout, cmd.Stderr = &o, &e
				if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
					t.Fatal(err)
				}
				return cmd.ProcessState.ExitCode(), o.String(), e.String()
			}
			status, out, errs := run("-h")
			if status != 0 || !strings.HasPrefix(out, "usage: "+name) || errs != "" {
				t.Errorf("-h: status %d, stdout %q, stderr %q", status, out, errs)
			}
			for _, args := range [][]string{{"-no-such-flag"}, {"/no/such/1", "/no/such/2", "/no/such/3"}} {
				status, out, errs := run(args...)
				if status == 1 && strings.Contains(errs, "no such file") {
					status = 2 // it takes any number of files
				}
				if status != 2 || out != "" || !strings.HasPrefix(errs, name+": ") || strings.Count(errs, "\n") != 1 || !strings.HasSuffix(errs, "\n") {
					t.Errorf("%q: status %d, stdout %q, stderr %q", args, status, out, errs)
				}
			}
			if tests, _ := filepath.Glob(filepath.Join(name, "*_test.go")); len(tests) == 0 {
				t.Error("it has no test")
			}
			comment := regexp.MustCompile(`(?m)^// Command ` + regexp.QuoteMeta(name) + ` `)
			sources, _ := filepath.Glob(filepath.Join(name, "main*.go"))
			commented := 0
			for _, s := range sources {
				if text, err := os.ReadFile(s); err == nil && comment.Match(text) {
					commented++
				}
			}
			if commented == 0 {
				t.Errorf("no package comment begins with %q", "Command "+name)
			}
		})
	}
}

// An interrupt ends a program that waits for standard input, too.
func TestIntegrationInterrupt(t *testing.T) {
	need.Asked(t, "examples")
	if runtime.GOOS == "windows" {
		t.Skip("no interrupts to send")
	}
	dir := t.TempDir()
	for _, c := range []string{"adsb -in -", "asnlookup", "bulkload -dry", "bulkload -dry -csv", "dualhomed -ask",
		"keycheck -ring - a@example.org", "keypublish -ring - -domain example.org -zone " + dir + "/zone", "routeget", "xfrm-diff -parse -", "xfrmhex"} {
		args := strings.Fields(c)
		bin := filepath.Join(dir, args[0])
		if out, err := exec.Command("go", "build", "-o", bin, "./"+args[0]).CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		cmd := exec.Command(bin, args[1:]...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond) // until it waits
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		dead := time.AfterFunc(5*time.Second, func() {
			t.Errorf("%s: still there 5 seconds after the interrupt", c)
			cmd.Process.Kill()
		})
		cmd.Wait()
		dead.Stop()
		in.Close()
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*zone*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}
