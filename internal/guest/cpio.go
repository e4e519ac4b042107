package guest

import (
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// archive writes a "newc" cpio archive, the form of an initramfs.
type archive struct {
	w    io.Writer
	n    int64
	ino  int
	dirs map[string]bool
	err  error
}

func (a *archive) write(b []byte) {
	if a.err == nil {
		var n int
		n, a.err = a.w.Write(b)
		a.n += int64(n)
	}
}

func (a *archive) pad() { a.write(make([]byte, -a.n&3)) }

func (a *archive) entry(name string, mode uint32, body []byte) {
	a.ino++
	name = strings.TrimPrefix(name, "/")
	a.write(fmt.Appendf(nil, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%s\x00",
		a.ino, mode, 0, 0, 1, 0, len(body), 0, 0, 0, 0, len(name)+1, 0, name))
	a.pad()
	a.write(body)
	a.pad()
}

// dir adds a folder and its parents once.
func (a *archive) dir(name string) {
	name = path.Clean("/" + name)
	if name == "/" || a.dirs[name] {
		return
	}
	a.dir(path.Dir(name))
	if a.dirs == nil {
		a.dirs = map[string]bool{}
	}
	a.dirs[name] = true
	a.entry(name, 0o040755, nil)
}

// file adds a file of the host.
func (a *archive) file(name, host string) {
	b, err := os.ReadFile(host)
	if err != nil && a.err == nil {
		a.err = err
	}
	a.bytes(name, b)
}

func (a *archive) bytes(name string, body []byte) {
	name = filepath.ToSlash(name)
	a.dir(path.Dir(name))
	a.entry(name, 0o100755, body)
}

func (a *archive) close() error {
	a.entry("TRAILER!!!", 0, nil)
	return a.err
}
