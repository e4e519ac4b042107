package openpgpdns

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Resolver looks up DNS records. [DNS] is one.
type Resolver interface {
	// LookupRecords returns the RDATA of the records of the type at the name
	// (absolute, presentation form), in the order of the answer, aliases
	// followed, names within uncompressed. If there are none the error wraps
	// [ErrNotFound]; any other error means that nobody knows.
	LookupRecords(ctx context.Context, name string, typ uint16) ([][]byte, error)
}

const (
	typeA     uint16 = 1
	typeCNAME uint16 = 5
	typeAAAA  uint16 = 28
	typeSRV   uint16 = 33
)

// DNS is a [Resolver] that asks one name server: over UDP, and over TCP when
// the answer does not fit, as is usual for keys. It does not validate DNSSEC:
// ask a server that does, over a path that you trust. The zero value is not
// usable: Server must be set. It may be used by several goroutines.
type DNS struct {
	// Server is the address of the name server, such as "127.0.0.1:53".
	Server string
	// Timeout for one exchange; 0 means 5 seconds.
	Timeout time.Duration
	// Dial replaces net.Dialer.DialContext if not nil.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

const maxAliases = 8

// LookupRecords implements [Resolver]. The error wraps [ErrNotFound],
// [ErrName], [ErrServer] or is one of the network.
func (d *DNS) LookupRecords(ctx context.Context, name string, typ uint16) ([][]byte, error) {
	asked := name
	for range maxAliases {
		if _, err := packName(asked); err != nil {
			return nil, inputError(ErrName, asked, err.Error())
		}
		m, err := d.exchange(ctx, asked, typ)
		if err != nil {
			return nil, inputError(err, name, "")
		}
		data, alias, err := answers(m, asked, typ)
		if err != nil {
			return nil, inputError(ErrServer, name, err.Error())
		}
		if len(data) > 0 {
			return data, nil
		}
		if alias == "" || strings.EqualFold(alias, asked) {
			return nil, inputError(ErrNotFound, name, "")
		}
		asked = alias
	}
	return nil, inputError(ErrServer, name, "too many aliases")
}

// query makes a message that asks for name and type, with EDNS.
func query(id uint16, wire []byte, typ uint16) []byte {
	m := binary.BigEndian.AppendUint16(nil, id)
	m = append(m, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 1) // RD; one question, one additional
	m = append(m, wire...)
	m = append(m, byte(typ>>8), byte(typ), 0, 1)
	return append(m, 0, 0, 41, byte(ednsSize>>8), ednsSize&0xff, 0, 0, 0, 0, 0, 0)
}

func (d *DNS) exchange(ctx context.Context, name string, typ uint16) ([]byte, error) {
	wire, err := packName(name)
	if err != nil {
		return nil, err
	}
	var id [2]byte
	rand.Read(id[:])
	q := query(binary.BigEndian.Uint16(id[:]), wire, typ)
	m, err := d.once(ctx, "udp", q)
	if err == nil && m[2]&2 != 0 { // truncated
		m, err = d.once(ctx, "tcp", q)
	}
	if err != nil {
		return nil, err
	}
	switch m[3] & 15 {
	case 0:
		return m, nil
	case 3:
		return nil, ErrNotFound
	}
	return nil, ErrServer
}

func (d *DNS) once(ctx context.Context, network string, q []byte) ([]byte, error) {
	timeout := d.Timeout
	if timeout <= 0 {
		timeout = 5 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	dial := d.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	conn, err := dial(ctx, network, d.Server)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if network == "tcp" {
		q = append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...)
	}
	if _, err := conn.Write(q); err != nil {
		return nil, err
	}
	if network == "tcp" {
		var n [2]byte
		if _, err := io.ReadFull(conn, n[:]); err != nil {
			return nil, err
		}
		m := make([]byte, binary.BigEndian.Uint16(n[:]))
		if _, err := io.ReadFull(conn, m); err != nil {
			return nil, err
		}
		if !answerTo(m, q[2:]) {
			return nil, ErrServer
		}
		return m, nil
	}
	m := make([]byte, MaxMessage)
	for range 16 { // strangers' packets do not end the wait, nor prolong it for ever
		n, err := conn.Read(m)
		if err != nil {
			return nil, err
		}
		if answerTo(m[:n], q) {
			return m[:n], nil
		}
	}
	return nil, ErrServer
}

// answerTo reports whether m is a response to q: same ID, same question.
func answerTo(m, q []byte) bool {
	question := q[12 : len(q)-11]
	if len(m) < 12 || m[0] != q[0] || m[1] != q[1] || m[2]&0x80 == 0 {
		return false
	}
	if m[4] == 0 && m[5] == 0 {
		return m[3]&15 != 0 // an error may come without the question
	}
	return m[4] == 0 && m[5] == 1 && len(m) >= 12+len(question) && strings.EqualFold(string(m[12:12+len(question)]), string(question))
}

// answers collects the RDATA of type typ in the answer section, starting from
// name and following its aliases; alias is where they end if no data is there.
func answers(m []byte, name string, typ uint16) (data [][]byte, alias string, err error) {
	var p dnsmessage.Parser
	if _, err := p.Start(m); err != nil {
		return nil, "", err
	}
	if err := p.SkipAllQuestions(); err != nil {
		return nil, "", err
	}
	aliases := map[string]string{}
	byName := map[string][][]byte{}
	for {
		h, err := p.AnswerHeader()
		if errors.Is(err, dnsmessage.ErrSectionDone) {
			break
		}
		if err != nil {
			return nil, "", err
		}
		owner := nameKey(h.Name)
		switch {
		case h.Class != dnsmessage.ClassINET:
			err = p.SkipAnswer()
		case uint16(h.Type) == typeCNAME && typ != typeCNAME:
			var c dnsmessage.CNAMEResource
			if c, err = p.CNAMEResource(); err == nil {
				aliases[owner] = c.CNAME.String()
			}
		case uint16(h.Type) != typ:
			err = p.SkipAnswer()
		case typ == typeA:
			var a dnsmessage.AResource
			a, err = p.AResource()
			byName[owner] = append(byName[owner], a.A[:])
		case typ == typeAAAA:
			var a dnsmessage.AAAAResource
			a, err = p.AAAAResource()
			byName[owner] = append(byName[owner], a.AAAA[:])
		case typ == typeSRV:
			var s dnsmessage.SRVResource
			if s, err = p.SRVResource(); err == nil {
				var w []byte
				if w, err = packName(s.Target.String()); err == nil {
					d := binary.BigEndian.AppendUint16(nil, s.Priority)
					d = binary.BigEndian.AppendUint16(d, s.Weight)
					d = binary.BigEndian.AppendUint16(d, s.Port)
					byName[owner] = append(byName[owner], append(d, w...))
				}
			}
		default:
			var u dnsmessage.UnknownResource
			u, err = p.UnknownResource()
			byName[owner] = append(byName[owner], u.Data)
		}
		if err != nil {
			return nil, "", err
		}
	}
	at := strings.ToLower(unescapeName(name))
	for range maxAliases {
		if d := byName[at]; len(d) > 0 {
			return d, "", nil
		}
		next, ok := aliases[at]
		if !ok {
			return nil, alias, nil
		}
		alias, at = next, strings.ToLower(next)
	}
	return nil, "", nameError("too many aliases")
}

// nameKey is a name as dnsmessage shows it: labels as raw octets joined by dots.
func nameKey(n dnsmessage.Name) string { return strings.ToLower(n.String()) }

// unescapeName undoes the escapes of a name in presentation form.
func unescapeName(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	w, err := packName(s)
	if err != nil {
		return s
	}
	for len(w) > 0 && w[0] > 0 {
		n := int(w[0])
		b.Write(w[1 : 1+n])
		b.WriteByte('.')
		w = w[1+n:]
	}
	return b.String()
}

// DialContext returns a function for http.Transport that resolves host names
// through r instead of the system.
func DialContext(r Resolver) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		var d net.Dialer
		if net.ParseIP(host) != nil {
			return d.DialContext(ctx, network, address)
		}
		ips, err := lookupHost(ctx, r, host)
		if err != nil {
			return nil, err
		}
		var conn net.Conn
		for _, ip := range ips {
			if conn, err = d.DialContext(ctx, network, net.JoinHostPort(ip.String(), port)); err == nil {
				return conn, nil
			}
		}
		return nil, err
	}
}

// lookupHost returns the addresses of a host; the error wraps ErrNotFound if it
// has none. Some servers fail when they are asked for IPv6: one family will do,
// as with getaddrinfo.
func lookupHost(ctx context.Context, r Resolver, host string) ([]net.IP, error) {
	var ips []net.IP
	var failed error
	for _, typ := range []uint16{typeA, typeAAAA} {
		data, err := r.LookupRecords(ctx, strings.TrimSuffix(host, ".")+".", typ)
		if err != nil && !errors.Is(err, ErrNotFound) {
			failed = err
		}
		for _, d := range data {
			if len(d) == net.IPv4len || len(d) == net.IPv6len {
				ips = append(ips, net.IP(d))
			}
		}
	}
	if len(ips) == 0 && failed != nil {
		return nil, failed
	}
	if len(ips) == 0 {
		return nil, inputError(ErrNotFound, host, "no address")
	}
	return ips, nil
}
