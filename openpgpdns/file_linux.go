package openpgpdns

import (
	"io/fs"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// folder is an open directory in which files are read and replaced with as few
// system calls as it takes: names are relative to it, and its files do not go
// through the runtime's poller.
type folder struct {
	path   string
	fd     int
	noLink atomic.Bool // create does not work here
}

func openFolder(path string) (*folder, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return &folder{path: path, fd: fd}, nil
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

// stamp returns the zero value for what is not a regular file.
func (d *folder) stamp(name string) stamp {
	var st unix.Stat_t
	_, err := retry(func() (int, error) { return 0, unix.Fstatat(d.fd, name, &st, 0) })
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return stamp{}
	}
	return stamp{inode: st.Ino, changed: st.Ctim.Nano(), size: st.Size}
}

// write makes a file in a folder that nobody uses yet.
func (d *folder) write(name string, data []byte) error {
	fd, err := retry(func() (int, error) {
		return unix.Openat(d.fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	})
	if err != nil {
		return d.failed("open", name, err)
	}
	err = d.fill(fd, name, data)
	if e := unix.Close(fd); err == nil && e != nil && e != unix.EINTR { // EINTR: closed all the same
		err = d.failed("close", name, e)
	}
	return err
}

// create makes a file that is not there yet, in one step: it is written without
// a name and then linked. done is false if that is impossible here, or the
// file is there after all.
func (d *folder) create(name string, data []byte) (done bool, err error) {
	if d.noLink.Load() {
		return false, nil
	}
	fd, err := retry(func() (int, error) {
		return unix.Openat(d.fd, ".", unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC, 0o644)
	})
	if err != nil {
		d.noLink.Store(true) // not every file system can do it
		return false, nil
	}
	if err := d.fill(fd, name, data); err != nil {
		unix.Close(fd)
		return false, err
	}
	err = unix.Linkat(fd, "", d.fd, name, unix.AT_EMPTY_PATH)
	if err != nil && err != unix.EEXIST {
		d.noLink.Store(true) // before Linux 6.10 it takes a privilege
	}
	if e := unix.Close(fd); e != nil && e != unix.EINTR {
		return false, d.failed("close", name, e)
	}
	return err == nil, nil
}

func (d *folder) fill(fd int, name string, data []byte) error {
	for len(data) > 0 {
		n, err := retry(func() (int, error) { return unix.Write(fd, data) })
		if err != nil {
			return d.failed("write", name, err)
		}
		data = data[n:]
	}
	return nil
}

// replace writes a file under the name tmp and renames it to name.
func (d *folder) replace(tmp, name string, data []byte) error {
	fd, err := retry(func() (int, error) {
		return unix.Openat(d.fd, tmp, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	})
	if err != nil {
		return d.failed("open", tmp, err)
	}
	err = d.fill(fd, tmp, data)
	if e := unix.Close(fd); err == nil && e != nil && e != unix.EINTR { // EINTR: closed all the same
		err = d.failed("close", tmp, e)
	}
	if err == nil {
		if e := unix.Renameat(d.fd, tmp, d.fd, name); e != nil {
			err = d.failed("rename", name, e)
		}
	}
	if err != nil {
		unix.Unlinkat(d.fd, tmp, 0)
	}
	return err
}
