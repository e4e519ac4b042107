package compare

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// README files hold each section or piece between two comments; everything
// else in them is written by hand.
func markers(name string) (begin, end string) {
	return "<!-- compare: " + name + " -->\n", "<!-- compare: end of " + name + " -->\n"
}

// merge returns the text of a README with the block of a name replaced, where
// it has a place for it. replace, where
// there is one, says of the present block whether it is.
func merge(readme, name, block string, replace func(old string) bool) (string, error) {
	begin, end := markers(name)
	before, rest, ok := strings.Cut(readme, begin)
	if !ok {
		return readme, nil
	}
	old, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("no end of %s", name)
	}
	if replace != nil && !replace(old) {
		return readme, nil
	}
	return before + begin + strings.TrimRight(block, "\n") + "\n" + end + after, nil
}

// empty reports whether a block has nothing yet.
func empty(block string) bool { return strings.TrimSpace(block) == "" }

// copyPages returns the README files below root that have markers, and copies
// into out those that are not there yet.
func copyPages(root, out string) (pages []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.Name() != "README.md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "<!-- compare: ") {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		pages = append(pages, name)
		target := filepath.Join(out, name)
		if _, err := os.Stat(target); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o644)
	})
	return pages, err
}

// updatePages writes blocks into those pages that have places for them.
func updatePages(out string, pages []string, blocks map[string]string, replace func(old string) bool) error {
	var errs []error
	for _, page := range pages {
		path := filepath.Join(out, page)
		b, err := os.ReadFile(path)
		text := string(b)
		for name, block := range blocks {
			if err == nil {
				text, err = merge(text, name, block, replace)
			}
		}
		if err == nil && text != string(b) {
			err = writeFile(path, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", page, err))
		}
	}
	return errors.Join(errs...)
}

// writeFile replaces a file as a whole.
func writeFile(name string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	err = write(f)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
