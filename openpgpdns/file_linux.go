package openpgpdns

import (
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// folder is an open directory in which files are read and replaced with as few
// system calls as it takes: names are relative to it, and its files do not go
// through the runtime's poller.
type folder struct {
	path string
	fd   int
}

func openFolder(path string) (*folder, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &folder{path, fd}, nil
}

func (d *folder) close() { unix.Close(d.fd) }

func (d *folder) failed(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: filepath.Join(d.path, name), Err: err}
}

func retry(f func() (int, error)) (int, error) {
	for {
		if n, err := f(); err != unix.EINTR {
			return n, err
		}
	}
}

// read reads up to len(b) octets of a file.
func (d *folder) read(name string, b []byte) (int, error) {
	fd, err := retry(func() (int, error) { return unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return 0, d.failed("open", name, err)
	}
	defer unix.Close(fd)
	n := 0
	for n < len(b) {
		m, err := retry(func() (int, error) { return unix.Read(fd, b[n:]) })
		if err != nil {
			return 0, d.failed("read", name, err)
		}
		// A short read of a regular file is its end, unless nothing is there yet.
		if n += m; m == 0 || n < len(b) {
			break
		}
	}
	return n, nil
}

// replace writes a file under the name tmp and renames it to name.
func (d *folder) replace(tmp, name string, data []byte) error {
	fd, err := retry(func() (int, error) {
		return unix.Openat(d.fd, tmp, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	})
	if err != nil {
		return d.failed("open", tmp, err)
	}
	err = func() error {
		for b := data; len(b) > 0; {
			n, err := retry(func() (int, error) { return unix.Write(fd, b) })
			if err != nil {
				unix.Close(fd)
				return d.failed("write", tmp, err)
			}
			b = b[n:]
		}
		if err := unix.Close(fd); err != nil && err != unix.EINTR { // closed all the same
			return d.failed("close", tmp, err)
		}
		if err := unix.Renameat(d.fd, tmp, d.fd, name); err != nil {
			return d.failed("rename", name, err)
		}
		return nil
	}()
	if err != nil {
		unix.Unlinkat(d.fd, tmp, 0)
	}
	return err
}
