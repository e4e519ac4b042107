package nat64

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The file form is Tayga's dynamic.map: one binding a line, IPv4 address,
// IPv6 address and Unix time of the last use in seconds, between blanks;
// lines that begin with # are comments.

// WriteTo writes the bindings in the form of Tayga's dynamic.map: one a line,
// IPv4 address, IPv6 address and Unix time of the last use in seconds; lines that
// begin with # are comments.
func (p *Pool) WriteTo(w io.Writer) (int64, error) {
	var total int64
	b := bufio.NewWriter(w)
	n, err := fmt.Fprintf(b, "# IPv4 address, IPv6 address, last use (Unix time); pool %v\n", p.V4())
	total += int64(n)
	for e := range p.Bindings() {
		if err != nil {
			break
		}
		n, err = fmt.Fprintf(b, "%v\t%v\t%d\n", e.V4, e.V6, e.Last.Unix())
		total += int64(n)
	}
	if err == nil {
		err = b.Flush()
	}
	if err != nil {
		return total, fmt.Errorf("nat64: write pool: %w", err)
	}
	return total, nil
}

// maxLoadErrors bounds what LoadFrom reports of one file.
const maxLoadErrors = 100

// LoadFrom adds the bindings of a file in the form of Tayga's dynamic.map and
// returns how many it took. Lines that cannot be read, that lie outside the
// pool or among its reserved addresses, or that give an address or a host a
// second time are left out; for each of them, up to 100, the error holds a
// [*LineError]. A time in the future counts as one at which the host has just
// gone dormant. Bindings past their maximal lease are left out silently.
func (p *Pool) LoadFrom(r io.Reader) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	var errs []error
	taken, line := 0, 0
	s := bufio.NewScanner(r)
	for s.Scan() {
		line++
		text := strings.TrimSpace(s.Text())
		if text == "" || text[0] == '#' {
			continue
		}
		ok, err := p.loadLine(text, now)
		if ok {
			taken++
		}
		if err != nil && len(errs) < maxLoadErrors {
			errs = append(errs, &LineError{Line: line, Text: text, Err: err})
		}
	}
	if err := s.Err(); err != nil {
		errs = append(errs, fmt.Errorf("nat64: read pool after line %d: %w", line, err))
	}
	p.next = now // take notice of who is dormant at the next new host
	return taken, errors.Join(errs...)
}

func (p *Pool) loadLine(text string, now time.Time) (bool, error) {
	f := strings.Fields(text)
	if len(f) != 3 {
		return false, ErrSyntax
	}
	a4, err4 := netip.ParseAddr(f[0])
	a6, err6 := netip.ParseAddr(f[1])
	unix, errT := strconv.ParseInt(f[2], 10, 64)
	if err4 != nil || err6 != nil || errT != nil {
		return false, ErrSyntax
	}
	if !a4.Is4() || !a6.Is6() || a6.Is4In6() || a6.Zone() != "" {
		return false, ErrFamily
	}
	v4, v6 := from4(a4), from6(a6)
	if !p.contains4(v4) || p.isReserved(v4) || !p.allows(v6) {
		return false, ErrOutsidePool
	}
	if p.find4(v4) != nil || p.find6(v6) != nil {
		return false, ErrDuplicate
	}
	last := time.Unix(unix, 0)
	if last.After(now) {
		last = now.Add(-p.min - time.Second)
	}
	if now.Sub(last) > p.max {
		return false, nil
	}
	p.bind(v6, v4, last)
	return true, nil
}

// SaveFile writes the bindings to a temporary file beside path and renames
// it, so that a reader or a crash finds the old file or the new one.
func (p *Pool) SaveFile(path string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("nat64: save pool: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
			err = fmt.Errorf("nat64: save pool: %w", err)
		}
	}()
	if _, err = p.WriteTo(f); err != nil {
		return err
	}
	if err = f.Chmod(0o644); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// LoadFile is [Pool.LoadFrom] for a file. It is no error if the file does not
// exist.
func (p *Pool) LoadFile(path string) (int, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("nat64: load pool: %w", err)
	}
	defer f.Close()
	return p.LoadFrom(f)
}
