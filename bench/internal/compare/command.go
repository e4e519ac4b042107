package compare

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A place is a folder that commands run in.
type place int

const (
	inBench place = iota // the module of the comparisons
	inRoot               // the module of the libraries
)

// Command runs a command line and returns what it wrote to its standard
// output. Words of the form NAME=value before the program go into its
// environment. %T in a word stands for the section's temporary folder. The
// line is shown in the README.
func (r *Report) Command(in place, words ...string) (string, error) {
	shown := strings.Join(quoted(words), " ")
	if in == inRoot {
		shown = "(cd .. && " + shown + ")"
	}
	shown = strings.NewReplacer("=%T", "="+filepath.Dir(r.temp), "%T/", "", "%T", ".").Replace(shown)
	r.commands = append(r.commands, shown)
	out, err := r.run(in, words)
	if err != nil {
		return "", fmt.Errorf("%s: %w", shown, err)
	}
	return out, nil
}

func (r *Report) run(in place, words []string) (string, error) {
	env, words := os.Environ(), slices.Clone(words)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "%T", r.temp)
	}
	for len(words) > 0 && variable.MatchString(words[0]) {
		env, words = append(env, words[0]), words[1:]
	}
	r.Progress(r.place + ": " + strings.Join(words, " "))
	cmd := exec.CommandContext(r.ctx, words[0], words[1:]...)
	cmd.Dir = r.Bench
	if in == inRoot {
		cmd.Dir = r.Root
	}
	cmd.Env = env
	asGroup(cmd)
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if r.Raw != "" {
		r.raw++
		name := filepath.Join(r.Raw, fmt.Sprintf("%s-%d.txt", r.section, r.raw))
		err = errors.Join(err, os.WriteFile(name, stdout.Bytes(), 0o644))
	}
	if err != nil {
		return stdout.String(), fmt.Errorf("%w\n%s%s", err, tail(stdout.String()), tail(stderr.String()))
	}
	return stdout.String(), nil
}

var (
	variable = regexp.MustCompile(`^[A-Z_]+=`)
	plain    = regexp.MustCompile(`^[A-Za-z0-9_./=:,+@%-]+$`)
)

func quoted(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		if out[i] = w; !plain.MatchString(w) {
			out[i] = "'" + w + "'"
		}
	}
	return out
}

// tail returns the last lines of an output.
func tail(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	if len(lines) > 15 {
		lines = lines[len(lines)-15:]
	}
	if s = strings.Join(lines, "\n"); s != "" {
		s += "\n"
	}
	return s
}

// Check runs the tests that hold both sides to right answers. It fails if one
// of them fails, and also if none of them ran. The tests' output is returned.
func (r *Report) Check(what string, in place, words ...string) (string, error) {
	out, err := r.Command(in, words...)
	if err != nil {
		return "", fmt.Errorf("correctness check: %w", err)
	}
	passed := strings.Count(out, "\n--- PASS: ")
	if passed == 0 {
		return "", fmt.Errorf("correctness check: %s ran no test\n%s", strings.Join(words, " "), tail(out))
	}
	tests := "tests"
	if passed == 1 {
		tests = "test"
	}
	r.checks = append(r.checks, fmt.Sprintf("%s (%d %s passed).", what, passed, tests))
	return out, nil
}

// has reports whether a program is installed.
func has(program string) bool { _, err := exec.LookPath(program); return err == nil }

// lacks returns what of root and some programs is missing, as a reason, or "".
func lacks(root bool, programs ...string) string {
	var m []string
	if root && os.Geteuid() != 0 {
		m = append(m, "root")
	}
	for _, p := range programs {
		if !has(p) {
			m = append(m, p)
		}
	}
	if m == nil {
		return ""
	}
	return "this machine lacks " + strings.Join(m, ", ")
}

// Modules notes the versions of Go modules in use.
func (r *Report) Modules(paths ...string) {
	out, err := r.run(inBench, append([]string{"go", "list", "-m"}, paths...))
	if err != nil {
		return
	}
	for line := range strings.Lines(out) {
		r.versions = append(r.versions, strings.TrimSpace(line))
	}
}

// Packages notes the versions of Debian packages.
func (r *Report) Packages(names ...string) {
	for _, n := range names {
		out, err := exec.CommandContext(r.ctx, "dpkg-query", "-W", "-f", "${Version}", n).Output()
		if err == nil && len(out) > 0 {
			r.versions = append(r.versions, n+" "+string(out))
		}
	}
}
