// Command newcomer plays a stranger who has only the module: it packs the
// module's zip from the checkout, serves it as a file proxy and, for each
// library alone, makes a fresh module that imports it, tidies, builds, and
// looks at what ended up in its go.sum. Then it follows the README's recipe to
// rename the module and builds and vets the renamed copy.
//
//	cd tools && go run ./newcomer
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

const (
	modulePath = "signalbox.example"
	version    = "v0.0.1"
	maxZip     = 8 << 20
)

// needs lists, for each library, the modules whose source a program that
// imports it may have to download: what it links and what its tests import.
var needs = map[string][]string{
	"modes":     nil,
	"lpctrie":   nil,
	"radix6":    {"golang.org/x/sys"}, // its tests, which ask the kernel
	"xfrm":      nil,
	"keycard":   nil,
	"nat64":     {"golang.org/x/net", "golang.org/x/sys", "github.com/google/gopacket"},
	"nat64/tun": {"golang.org/x/net", "golang.org/x/sys", "github.com/google/gopacket"},
	// The last two lines are what tests of nat64 and of cilium/ebpf import.
	"nat64/fastpath": {"golang.org/x/net", "golang.org/x/sys", "github.com/cilium/ebpf", "github.com/vishvananda/netlink", "github.com/vishvananda/netns",
		"github.com/google/gopacket", "github.com/go-quicktest/qt", "github.com/google/go-cmp", "github.com/kr/pretty", "github.com/kr/text", "github.com/rogpeppe/go-internal",
		"github.com/josharian/native", "github.com/jsimonetti/rtnetlink/v2", "github.com/mdlayher/netlink", "github.com/mdlayher/socket", "golang.org/x/sync"},
	"xfrm/conn":        {"golang.org/x/sys"},
	"openpgpdns":       {"github.com/ProtonMail/go-crypto", "github.com/cloudflare/circl", "golang.org/x/crypto", "golang.org/x/net", "golang.org/x/sys", "golang.org/x/text"},
	"openpgpdns/dnsrr": {"github.com/miekg/dns", "golang.org/x/mod", "golang.org/x/sync", "golang.org/x/tools", "github.com/ProtonMail/go-crypto", "github.com/cloudflare/circl", "golang.org/x/crypto", "golang.org/x/net", "golang.org/x/sys", "golang.org/x/text"},
	"keycard/softcard": {"golang.org/x/crypto", "golang.org/x/sys"},
	"keycard/pgp":      {"github.com/ProtonMail/go-crypto", "github.com/cloudflare/circl", "golang.org/x/crypto", "golang.org/x/sys"},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "newcomer:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "newcomer")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := pack(root, filepath.Join(work, "proxy", modulePath, "@v")); err != nil {
		return err
	}
	var failed []error
	names := make([]string, 0, len(needs))
	for n := range needs {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		if _, err := os.Stat(filepath.Join(root, n)); errors.Is(err, fs.ErrNotExist) {
			fmt.Println("absent  ", n)
			continue
		}
		if err := try(work, n); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", n, err))
			continue
		}
		fmt.Println("ok      ", n)
	}
	if err := rename(root, filepath.Join(work, "renamed")); err != nil {
		failed = append(failed, fmt.Errorf("renaming: %w", err))
	} else {
		fmt.Println("ok       the renamed copy")
	}
	return errors.Join(failed...)
}

// pack writes what a module proxy would serve.
func pack(root, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := zip.CreateFromVCS(f, module.Version{Path: modulePath, Version: version}, root, "HEAD", ""); err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	fmt.Printf("module zip: %d kB\n", st.Size()/1000)
	if st.Size() > maxZip {
		return fmt.Errorf("the module zip has %d bytes, more than %d", st.Size(), maxZip)
	}
	for name, body := range map[string]string{
		"list": version + "\n", version + ".mod": string(mod),
		version + ".info": fmt.Sprintf(`{"Version":%q,"Time":"2026-01-01T00:00:00Z"}`, version),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o644); err != nil {
			return err
		}
	}
	return f.Close()
}

// command runs go in a folder with the file proxy in front of the usual one.
func command(dir, proxy string, args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw", "CGO_ENABLED=0")
	if proxy != "" {
		out, err := exec.Command("go", "env", "GOPROXY", "GOMODCACHE").Output()
		if err != nil {
			return err
		}
		usual, downloaded, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
		cache := filepath.Join(filepath.Dir(proxy), "cache")
		cmd.Env = append(cmd.Env, "GOPROXY="+strings.Join([]string{fileURL(proxy), fileURL(filepath.Join(downloaded, "cache", "download")), usual}, ","),
			"GONOSUMDB="+modulePath, "GONOPROXY=none", "GOPRIVATE=", "GOMODCACHE="+cache)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

func fileURL(path string) string { return "file://" + filepath.ToSlash(path) }

var sumLine = regexp.MustCompile(`(?m)^(\S+) (\S+) h1:`)

func try(work, name string) error {
	proxy := filepath.Join(work, "proxy")
	dir := filepath.Join(work, "user", strings.ReplaceAll(name, "/", "-"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	src := fmt.Sprintf("package main\n\nimport _ %q\n\nfunc main() {}\n", path.Join(modulePath, name))
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(src), 0o644); err != nil {
		return err
	}
	mod := "module user.example/" + path.Base(name) + "\n\ngo 1.26.0\n\nrequire " + modulePath + " " + version + "\n"
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{{"go", "mod", "tidy"}, {"go", "build", "-o", os.DevNull, "."}} {
		if err := command(dir, proxy, args...); err != nil {
			return err
		}
	}
	sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return err
	}
	for _, m := range sumLine.FindAllSubmatch(sum, -1) {
		mod, version := string(m[1]), string(m[2])
		if mod != modulePath && !strings.HasSuffix(version, "/go.mod") && !slices.Contains(needs[name], mod) {
			return fmt.Errorf("its user's go.sum asks for %s %s", mod, version)
		}
	}
	return nil
}

// rename follows the recipe in the README, read from there, in a copy.
func rename(root, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	archive := exec.Command("git", "-C", root, "archive", "HEAD")
	tar := exec.Command("tar", "-x", "-C", dir)
	var out bytes.Buffer
	pipe, err := archive.StdoutPipe()
	if err != nil {
		return err
	}
	tar.Stdin, tar.Stderr, archive.Stderr = pipe, &out, &out
	if err := tar.Start(); err != nil {
		return err
	}
	if err := errors.Join(archive.Run(), tar.Wait()); err != nil {
		return fmt.Errorf("%w: %s", err, out.Bytes())
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return err
	}
	var recipe []string
	for line := range strings.Lines(string(readme)) {
		if l := strings.TrimSpace(line); strings.Contains(l, "your.host/signalbox") {
			recipe = append(recipe, l)
		}
	}
	if len(recipe) != 2 {
		return fmt.Errorf("the README's recipe has %d lines, not 2", len(recipe))
	}
	for _, l := range recipe {
		if err := command(dir, "", "sh", "-c", l); err != nil {
			return err
		}
	}
	if err := command(dir, "", "sh", "-c", "! grep -rn '"+strings.ReplaceAll(modulePath, ".", `\.`)+"' --include='*.go' --include=go.mod ."); err != nil {
		return fmt.Errorf("the old name is still there: %w", err)
	}
	return command(dir, "", "go", "vet", "./...")
}
