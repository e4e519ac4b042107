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

// A README holds each section between two comments; everything else in it is
// written by hand.
func markers(section string) (begin, end string) {
	return "<!-- compare: " + section + " -->\n", "<!-- compare: end of " + section + " -->\n"
}

// newReadme is a README without figures; it fixes the order of the sections.
func newReadme() string {
	text := "# Peers side by side\n"
	for _, s := range Sections() {
		begin, end := markers(s.Name)
		text += "\n" + begin + end
	}
	return text
}

// merge returns the text of a README with a section's block replaced, or
// added at the end.
func merge(readme, section, block string) (string, error) {
	begin, end := markers(section)
	block = begin + strings.TrimRight(block, "\n") + "\n" + end
	i := strings.Index(readme, begin)
	if i < 0 {
		if readme = strings.TrimRight(readme, "\n"); readme != "" {
			readme += "\n\n"
		}
		return readme + block, nil
	}
	n := strings.Index(readme[i:], end)
	if n < 0 {
		return "", fmt.Errorf("README.md: no end of section %s", section)
	}
	return readme[:i] + block + readme[i+n+len(end):], nil
}

// empty reports whether a README has nothing yet about a section.
func empty(readme, section string) bool {
	begin, end := markers(section)
	_, rest, ok := strings.Cut(readme, begin)
	body, _, _ := strings.Cut(rest, end)
	return !ok || strings.TrimSpace(body) == ""
}

func readReadme(path string) (string, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newReadme(), nil
	}
	return string(b), err
}

// updateReadme replaces a section of a README.
func updateReadme(path, section, block string) error {
	old, err := readReadme(path)
	if err != nil {
		return err
	}
	text, err := merge(old, section, block)
	if err != nil {
		return err
	}
	return writeFile(path, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
}

// noteReadme fills a section only if it was empty: what another machine
// measured is worth more than the note that this one could not.
func noteReadme(path, section, block string) error {
	old, err := readReadme(path)
	if err != nil || !empty(old, section) {
		return err
	}
	return updateReadme(path, section, block)
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
