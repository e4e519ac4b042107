package signalbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "signalbox.example"

// allowed maps each library package to the modules outside the standard
// library that it may link. A package may import its own parents and
// internal packages, never a sibling. Packages below an entry without one of
// their own inherit it.
var allowed = map[string][]string{
	"modes":            nil,
	"nat64":            {"golang.org/x/net", "golang.org/x/sys"}, // x/net/ipv4 links x/sys
	"nat64/tun":        {"golang.org/x/net", "golang.org/x/sys"},
	"nat64/fastpath":   {"golang.org/x/net", "golang.org/x/sys", "github.com/cilium/ebpf", "github.com/vishvananda/netlink", "github.com/vishvananda/netns"},
	"lpctrie":          nil,
	"radix6":           nil,
	"xfrm":             nil,
	"xfrm/conn":        {"golang.org/x/sys"},
	"openpgpdns":       {"github.com/ProtonMail/go-crypto", "github.com/cloudflare/circl", "golang.org/x/crypto", "golang.org/x/text", "golang.org/x/net", "golang.org/x/sys"},
	"openpgpdns/dnsrr": {"github.com/ProtonMail/go-crypto", "github.com/cloudflare/circl", "golang.org/x/crypto", "golang.org/x/text", "golang.org/x/net", "golang.org/x/sys", "github.com/miekg/dns"},
	"keycard":          nil,
	"keycard/softcard": {"golang.org/x/crypto", "golang.org/x/sys"},
	"keycard/pgp":      {"github.com/ProtonMail/go-crypto", "github.com/cloudflare/circl", "golang.org/x/crypto", "golang.org/x/sys"},
}

// testAllowed lists what only a library's tests may import, in addition.
var testAllowed = []string{"github.com/google/gopacket", "golang.org/x/net", "golang.org/x/sys", "golang.org/x/text"}

type goPackage struct {
	ImportPath   string
	Dir          string
	Name         string
	Standard     bool
	CgoFiles     []string
	Module       *struct{ Path string }
	Deps         []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func list(t *testing.T, args ...string) []goPackage {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command("go", append([]string{"list", "-json"}, args...)...)
	cmd.Env = append(os.Environ(), "GOOS=linux")
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("no go command here (a test binary that was carried to another machine)")
	}
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var ps []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); err == io.EOF {
			return ps
		} else if err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
}

// rule returns the entry of allowed that governs a package path relative to
// the module, the longest that is a parent of it.
func rule(rel string) (entry string, ok bool) {
	for p := rel; p != "."; p = filepath.ToSlash(filepath.Dir(p)) {
		if _, ok := allowed[p]; ok {
			return p, true
		}
	}
	return "", false
}

func within(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool {
		return path == p || strings.HasPrefix(path, p+"/")
	})
}

// library reports the module-relative path of a library package.
func library(path string) (string, bool) {
	rel := strings.TrimPrefix(path, module+"/")
	if rel == path || strings.HasPrefix(rel, "internal/") || rel == "examples" || strings.HasPrefix(rel, "examples/") {
		return rel, false
	}
	return rel, true
}

func TestPackagesAreIndependent(t *testing.T) {
	if testing.Short() {
		t.Skip("runs go list")
	}
	all := map[string]goPackage{}
	for _, p := range list(t, "-deps", "./...") {
		all[p.ImportPath] = p
	}
	top := func(rel string) string { r, _, _ := strings.Cut(rel, "/"); return r }
	for path, p := range all {
		rel, ok := library(path)
		if !ok || p.Standard {
			continue
		}
		entry, ok := rule(rel)
		if !ok {
			t.Errorf("%s: no rule in this test says what it may import", rel)
			continue
		}
		check := func(kind, imp string, extra []string) {
			if q, known := all[imp]; known && q.Standard {
				return
			}
			if strings.HasPrefix(imp, "vendor/") || !strings.Contains(strings.Split(imp, "/")[0], ".") {
				return
			}
			if r, own := strings.CutPrefix(imp, module+"/"); own {
				switch {
				case top(r) == top(rel):
				case kind == "test" && strings.HasPrefix(r, "internal/"):
				default:
					t.Errorf("%s: %s import of %s: packages are independent", rel, kind, imp)
				}
				return
			}
			if !within(imp, allowed[entry]) && !within(imp, extra) {
				t.Errorf("%s: %s import of %s is not in the list", rel, kind, imp)
			}
		}
		for _, imp := range p.Deps {
			check("linked", imp, nil)
		}
		for _, imp := range slices.Concat(p.TestImports, p.XTestImports) {
			check("test", imp, testAllowed)
		}
		// A parent never imports its own sub-packages.
		for _, imp := range p.Imports {
			if strings.HasPrefix(imp, path+"/") && !strings.HasPrefix(imp, path+"/internal/") {
				t.Errorf("%s imports its own sub-package %s", rel, imp)
			}
		}
	}
	for path, p := range all {
		if !p.Standard && len(p.CgoFiles) > 0 && within(path, []string{module}) {
			t.Errorf("%s uses cgo", path)
		}
	}
}

// forbidden are calls that a library never makes: it does not print, log,
// exit or read flags.
var forbidden = map[string][]string{
	"fmt": {"Print", "Printf", "Println"},
	"os":  {"Exit"},
	"log": nil, "log/slog": nil, "flag": nil, // nil: the import itself
}

func walkGo(t *testing.T, visit func(path string, src []byte)) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if n := d.Name(); path != "." && (n[0] == '.' || n == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) == ".go" {
			src, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			visit(filepath.ToSlash(path), src)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFilesAreFormatted(t *testing.T) {
	walkGo(t, func(path string, src []byte) {
		out, err := format.Source(src)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else if !bytes.Equal(out, src) {
			t.Errorf("%s: gofmt would change it", path)
		}
	})
}

func TestLibrariesStaySilent(t *testing.T) {
	fset := token.NewFileSet()
	walkGo(t, func(path string, src []byte) {
		rel := filepath.ToSlash(filepath.Dir(path))
		if _, ok := rule(rel); !ok || strings.HasSuffix(path, "_test.go") {
			return
		}
		f, err := parser.ParseFile(fset, path, src, 0)
		if err != nil {
			t.Error(err)
			return
		}
		names := map[string]string{}
		for _, s := range f.Imports {
			p := strings.Trim(s.Path.Value, `"`)
			if calls, bad := forbidden[p]; bad && calls == nil {
				t.Errorf("%s: a library does not import %s", path, p)
			}
			names[filepath.Base(p)] = p
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "init" {
					t.Errorf("%s: init function", fset.Position(n.Pos()))
				}
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") && id.Obj == nil {
					t.Errorf("%s: %s", fset.Position(n.Pos()), id.Name)
				}
				if s, ok := n.Fun.(*ast.SelectorExpr); ok {
					if id, ok := s.X.(*ast.Ident); ok && id.Obj == nil && slices.Contains(forbidden[names[id.Name]], s.Sel.Name) {
						t.Errorf("%s: call of %s.%s", fset.Position(n.Pos()), id.Name, s.Sel.Name)
					}
				}
			}
			return true
		})
	})
}

func TestExportedNamesAreDocumented(t *testing.T) {
	fset := token.NewFileSet()
	packageDoc := map[string]bool{}
	walkGo(t, func(path string, src []byte) {
		rel := filepath.ToSlash(filepath.Dir(path))
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		f, err := parser.ParseFile(fset, path, src, parser.ParseComments)
		if err != nil {
			t.Error(err)
			return
		}
		packageDoc[rel] = packageDoc[rel] || f.Doc != nil
		if _, ok := rule(rel); !ok {
			return
		}
		for _, msg := range undocumented(fset, f) {
			t.Error(msg)
		}
	})
	for rel, ok := range packageDoc {
		if !ok {
			t.Errorf("%s: no package comment", rel)
		}
	}
}

// undocumented lists the exported names of a file that have no comment. In a
// const or var group a comment on the group or on an earlier line of the same
// block serves all.
func undocumented(fset *token.FileSet, f *ast.File) []string {
	var out []string
	report := func(n ast.Node, name string) {
		out = append(out, fmt.Sprintf("%s: %s has no comment", fset.Position(n.Pos()), name))
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
				report(d, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
						report(s, s.Name.Name)
					}
				case *ast.ValueSpec:
					if s.Names[0].IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						report(s, s.Names[0].Name)
					}
				}
			}
		}
	}
	return out
}

// exportedReceiver reports whether a function is reachable: it has no
// receiver, or one of an exported type, and is not one of the methods whose
// meaning the standard library fixes.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	if slices.Contains([]string{"String", "Error", "Unwrap", "Is", "Len", "Less", "Swap"}, d.Name.Name) {
		return false
	}
	x := d.Recv.List[0].Type
	for {
		switch y := x.(type) {
		case *ast.StarExpr:
			x = y.X
		case *ast.IndexExpr:
			x = y.X
		case *ast.IndexListExpr:
			x = y.X
		case *ast.Ident:
			return y.IsExported()
		default:
			return true
		}
	}
}
