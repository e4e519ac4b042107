//go:build !linux

package openpgpdns

import (
	"io"
	"os"
	"path/filepath"
)

// folder is a directory in which files are read and replaced.
type folder struct{ path string }

func openFolder(path string) (*folder, error) { return &folder{path}, nil }

func (d *folder) close() {}

// read reads up to len(b) octets of a file.
func (d *folder) read(name string, b []byte) (int, error) {
	f, err := os.Open(filepath.Join(d.path, name))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	n, err := io.ReadFull(f, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return n, err
}

// stamp would tell the state of a file without reading it; only on Linux is
// there one that cannot be set.
func (d *folder) stamp(string) stamp { return stamp{} }

// write makes a file in a folder that nobody uses yet.
func (d *folder) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(d.path, name), data, 0o644)
}

// create would make a new file without a temporary name; only Linux can.
func (d *folder) create(string, []byte) (done bool, err error) { return false, nil }

// replace writes a file under the name tmp and renames it to name.
func (d *folder) replace(tmp, name string, data []byte) error {
	tmp = filepath.Join(d.path, tmp)
	err := os.WriteFile(tmp, data, 0o644)
	if err == nil {
		err = os.Rename(tmp, filepath.Join(d.path, name))
	}
	if err != nil {
		os.Remove(tmp)
	}
	return err
}
