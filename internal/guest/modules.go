package guest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// moduleIndex is the content of a modules.dep file.
type moduleIndex struct {
	root  string              // folder that the paths are relative to
	paths map[string]string   // name -> path
	deps  map[string][]string // path -> paths it needs
	order []string            // paths, sorted
}

// moduleName turns kernel/net/ipv4/esp4.ko.xz into esp4. The kernel takes -
// and _ for the same.
func moduleName(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

func readModuleIndex(root string) (*moduleIndex, error) {
	b, err := os.ReadFile(filepath.Join(root, "modules.dep"))
	if err != nil {
		return nil, err
	}
	x := &moduleIndex{root: root, paths: map[string]string{}, deps: map[string][]string{}}
	for line := range strings.Lines(string(b)) {
		path, deps, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		x.paths[moduleName(path)] = path
		x.deps[path] = strings.Fields(deps)
		x.order = append(x.order, path)
	}
	slices.Sort(x.order)
	return x, nil
}

// resolve lists the paths of the wanted modules and of all they need, each
// after what it needs. It also returns the names that do not exist.
func (x *moduleIndex) resolve(wanted []string) (paths, missing []string) {
	seen := map[string]bool{}
	var add func(path string, depth int)
	add = func(path string, depth int) {
		if seen[path] || depth > 64 {
			return
		}
		seen[path] = true
		for _, d := range x.deps[path] {
			add(d, depth+1)
		}
		paths = append(paths, path)
	}
	for _, w := range wanted {
		if dir, ok := strings.CutSuffix(w, "/*"); ok {
			for _, p := range x.order {
				// tcrypt is a benchmark that never loads, by design.
				if filepath.Dir(p) == filepath.Join("kernel", dir) && moduleName(p) != "tcrypt" {
					add(p, 0)
				}
			}
		} else if p, ok := x.paths[strings.ReplaceAll(w, "-", "_")]; ok {
			add(p, 0)
		} else {
			missing = append(missing, w)
		}
	}
	return paths, missing
}

// modulesOf finds the module folder of a kernel, the only one below tree.
func modulesOf(tree string) (string, error) {
	m, err := filepath.Glob(filepath.Join(tree, "*", "modules.dep"))
	if err != nil || len(m) == 0 {
		return "", fmt.Errorf("no modules.dep below %s", tree)
	}
	return filepath.Dir(m[len(m)-1]), nil
}
