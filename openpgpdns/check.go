package openpgpdns

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"iter"
	"strconv"
	"strings"
	"time"
)

// Question is one look-up that a client makes for an address, and what comes
// of it if the ring is published as this package does it.
type Question struct {
	// Client that asks: "GnuPG", "Sequoia sq", "browsers" (OpenPGP.js and what
	// is built on it, such as Mailvelope and Proton), "RFC 7929".
	Client string
	// Mechanism of the question.
	Mechanism Mechanism
	// Asks is the URL, or the owner name and type; "" if the address cannot be
	// asked for in this way.
	Asks string
	// Fingerprints and Octets of the answer; none if nothing is published there.
	Fingerprints [][]byte
	Octets       int
	// Refused says why the client gets or takes nothing. Empty: it takes the
	// answer.
	Refused []string
	// Remarks are things to know about an answer that is taken.
	Remarks []string
}

// Found reports whether the client ends up with a key.
func (q Question) Found() bool { return len(q.Fingerprints) > 0 && len(q.Refused) == 0 }

// Checked is the result of [Check].
type Checked struct {
	// Address as given, and as it was understood.
	Input   string
	Address Address
	// Questions of the known clients.
	Questions []Question
	// Problems of the ring: see [Collection.Problems].
	Problems     []error
	ProblemCount int
}

// Check tells what GnuPG, Sequoia sq and browser clients ask for when a user
// types address, what they get if the keys in certs are published with the
// options o, and why they might refuse it. Self-signatures are verified.
//
// The error wraps [ErrAddress] if GnuPG would not take address for one; other
// errors are those of [Collect].
func Check(ctx context.Context, address string, certs iter.Seq2[*Cert, error], o Options) (Checked, error) {
	a, err := ParseAddress(address)
	if err != nil {
		return Checked{}, err
	}
	o.Verify = true
	o.Filter.Now = timeOf(o.Filter.now())
	c, err := Collect(ctx, a.Domain, certs, o)
	if err != nil {
		return Checked{}, err
	}
	defer c.Close()
	ck := checker{a: a, c: c, now: o.Filter.Now}
	if err := ck.load(address); err != nil {
		return Checked{}, err
	}
	out := Checked{Input: address, Address: a, Questions: ck.questions()}
	out.Problems, out.ProblemCount = c.Problems()
	return out, nil
}

type checker struct {
	a   Address
	c   *Collection
	now time.Time
	// as typed
	rawLocal, rawDomain string
	gpg                 Entry // what is published for the address
	unicode             Entry // what is published under the Unicode-lowered local part
}

func (k *checker) load(address string) error {
	local, domain, _ := mailbox([]byte(address))
	k.rawLocal, k.rawDomain = string(local), string(domain)
	var err error
	if k.gpg, err = k.find(k.a.Local); err == nil {
		k.unicode, err = k.find(strings.ToLower(k.rawLocal))
	}
	return err
}

// find returns the entry of a local part; without keys if there is none.
func (k *checker) find(local string) (Entry, error) {
	i, ok := k.c.index[sha1.Sum([]byte(local))]
	if !ok {
		return Entry{}, nil
	}
	e, _, err := k.c.entry(int(i), nil, false)
	return e, err
}

func (k *checker) questions() []Question {
	var qs []Question
	ask := func(client string, m Mechanism, asks string, e Entry) *Question {
		qs = append(qs, Question{Client: client, Mechanism: m, Asks: asks, Fingerprints: e.Fingerprints, Octets: len(e.Keys)})
		q := &qs[len(qs)-1]
		if len(e.Keys) == 0 {
			q.Refused = append(q.Refused, "nothing is published there")
		}
		return q
	}
	gpgWKD := ask("GnuPG", ByWKD, k.a.WKDURL(Advanced), k.gpg)
	k.gpgTakes(gpgWKD, k.gpg, true)
	gpgWKD.Remarks = append(gpgWKD.Remarks, "only if openpgpkey."+k.a.Domain+" has no address: "+k.a.WKDURL(Direct))

	// sq and the browsers map all upper-case letters, not only ASCII.
	lowered := Address{Local: strings.ToLower(k.rawLocal), Domain: k.a.Domain}
	for _, client := range []string{"Sequoia sq", "browsers"} {
		e := k.unicode
		q := ask(client, ByWKD, lowered.WKDURL(Advanced), e)
		if lowered != k.a {
			q.Remarks = append(q.Remarks, "asks with all upper-case letters lowered, not only ASCII ones as GnuPG does")
			if len(e.Keys) == 0 && len(k.gpg.Keys) > 0 {
				q.Refused = append(q.Refused, "the key is published under "+k.a.WKDHash()+", where GnuPG asks")
			}
		}
		spelled := false
		k.keys(q, e, func(c *Cert) {
			if client == "Sequoia sq" && c.version == 6 {
				q.Remarks = append(q.Remarks, "sq 0.27 reads no version 6 keys")
			}
			for u := range c.UserIDs(k.now) {
				local, domain, ok := mailbox(u.Bytes)
				spelled = spelled || ok && string(local) == k.rawLocal && string(domain) == k.rawDomain
			}
		})
		if client == "Sequoia sq" && len(e.Keys) > 0 {
			if !spelled {
				q.Refused = append(q.Refused, "no user ID spells the address as it was typed, and sq compares octets")
			}
			if !isASCII(k.rawLocal + k.rawDomain) {
				q.Refused = append(q.Refused, "sq 0.27 cannot ask for an address beyond ASCII")
			}
		}
		if client == "browsers" && len(e.Keys) > 0 {
			q.Remarks = append(q.Remarks, "the server must send Access-Control-Allow-Origin: *")
		}
	}

	gpgDNS := func(m Mechanism, typ string, name string, err error, record func() (Record, error)) *Question {
		if err != nil {
			q := ask("GnuPG", m, "", Entry{})
			q.Refused = []string{err.Error()}
			return q
		}
		q := ask("GnuPG", m, name+" "+typ, k.gpg)
		if len(k.gpg.Keys) == 0 {
			return q
		}
		k.gpgTakes(q, k.gpg, m == ByDANE)
		if r, err := record(); err != nil {
			q.Refused = append(q.Refused, err.Error())
		} else {
			for _, w := range r.Warnings(Portable, 0) {
				q.Remarks = append(q.Remarks, w.Software+": "+w.Text)
			}
		}
		return q
	}
	name, err := k.a.DANEName()
	gpgDNS(ByDANE, "OPENPGPKEY", name, err, k.gpg.OPENPGPKEY)
	if strict, e := StrictDANELabel(k.rawLocal); e == nil && err == nil && strict != k.a.DANELabel() {
		entry := Entry{}
		if k.gpg.StrictLabel == strict {
			entry = k.gpg
		}
		q := ask("RFC 7929", ByDANE, strict+strings.TrimPrefix(name, k.a.DANELabel())+" OPENPGPKEY", entry)
		q.Remarks = append(q.Remarks, "clients that keep the case of the local part ask here: publish the strict label too")
	}
	name, err = k.a.CERTName()
	gpgDNS(ByCERT, "CERT", name, err, k.gpg.CERTPGP)
	name, err = k.a.PKAName()
	q := gpgDNS(ByPKA, "CERT", name, err, func() (Record, error) { return k.gpg.CERTIPGP("") })
	q.Remarks = append(q.Remarks, "only GnuPG before 2.3, and only with a URL in the record")
	return qs
}

// keys looks at each key of an answer.
func (k *checker) keys(q *Question, e Entry, more func(*Cert)) {
	if len(e.Keys) > MaxKeyFile && q.Mechanism == ByWKD {
		q.Refused = append(q.Refused, "more than "+strconv.Itoa(MaxKeyFile)+" octets")
	}
	n := 0
	for c, err := range NewReader(strings.NewReader(string(e.Keys))).All() {
		if err != nil {
			q.Refused = append(q.Refused, err.Error())
			return
		}
		n++
		id := strings.ToUpper(hex.EncodeToString(c.Fingerprint()))
		for _, r := range k.usability(c) {
			q.Remarks = append(q.Remarks, id+": "+r)
		}
		if more != nil {
			more(c)
		}
	}
	if n > MaxKeysPerAddress {
		q.Remarks = append(q.Remarks, strconv.Itoa(n)+" keys: GnuPG 2.3 takes the first "+strconv.Itoa(MaxKeysPerAddress))
	}
}

// gpgTakes adds what GnuPG makes of an answer. byUserID: it imports only the
// user IDs with the address it looked for.
func (k *checker) gpgTakes(q *Question, e Entry, byUserID bool) {
	v4, v6, matching := false, false, 0
	k.keys(q, e, func(c *Cert) {
		v4, v6 = v4 || c.version == 4, v6 || c.version == 6
		for u := range c.UserIDs(k.now) {
			_, domain, ok := mailbox(u.Bytes)
			if ok && u.HasAddress && u.Address == k.a && lowerASCII(domain) == k.a.Domain {
				matching++
				break
			}
		}
	})
	switch {
	case v4 && v6:
		q.Refused = append(q.Refused, "gpg 2.2 imports nothing from keys of versions 4 and 6 together")
	case v6:
		q.Refused = append(q.Refused, "gpg 2.2 reads no version 6 keys")
	}
	if !isASCII(k.rawDomain) {
		q.Remarks = append(q.Remarks, "gpg must be given the domain as "+k.a.Domain)
	}
	if byUserID && len(e.Keys) > 0 && matching == 0 {
		q.Refused = append(q.Refused, "the user ID spells the domain otherwise than as "+k.a.Domain+", and gpg compares octets")
	}
}

// usability says what keeps a key that is found from being used.
func (k *checker) usability(c *Cert) []string {
	var out []string
	if c.Revoked() {
		out = append(out, "revoked")
	}
	if e, ok := c.Expires(k.now); ok && !e.After(k.now) {
		out = append(out, "expired on "+e.Format(time.DateOnly))
	}
	revoked, usable := 0, 0
	for u := range c.UserIDs(k.now) {
		if u.Address != k.a {
			continue
		}
		if u.Revoked || u.Expired {
			revoked++
		} else {
			usable++
		}
	}
	if usable == 0 && revoked > 0 {
		out = append(out, "the user ID is revoked or expired")
	}
	if !c.canEncrypt(k.now.Unix()) {
		out = append(out, "no valid encryption key in it")
	}
	if c.weak() {
		out = append(out, "a self-signature made with SHA-1 or MD5, which newer clients refuse")
	}
	return out
}

// weak reports whether a self-signature that decides uses a broken hash.
func (c *Cert) weak() bool {
	for i := 1; i < len(c.packets); {
		end := c.group(i)
		s := state{sig: -1}
		switch c.packets[i].tag {
		case tagUserID:
			s = c.certState(i, end)
		case tagPublicSubkey:
			s = c.subkeyState(i, end)
		}
		if s.sig >= 0 && c.packets[s.sig].flags&weakHash != 0 {
			return true
		}
		i = end
	}
	return false
}

// canEncrypt reports whether the primary key or a subkey may be used for
// encryption at the time now.
func (c *Cert) canEncrypt(now int64) bool {
	if e := c.primaryExpiry(now); c.Revoked() || e != 0 && e <= now {
		return false
	}
	capable := func(key, sig *packetRef) bool {
		if !encrypts(c.body(key)) {
			return false
		}
		return sig == nil || sig.flags&hasKeyFlags == 0 || sig.flags&encryptionKey != 0
	}
	var primary *packetRef
	for i := 1; i < len(c.packets); i++ {
		p := &c.packets[i]
		if p.tag == tagPublicSubkey {
			end := c.group(i)
			s := c.subkeyState(i, end)
			if s.sig >= 0 && !s.revoked {
				b := &c.packets[s.sig]
				if (b.keyExpires == 0 || int64(c.keyCreated(p))+int64(b.keyExpires) > now) && capable(p, b) {
					return true
				}
			}
			i = end - 1
		} else if p.counts() && (p.isCert() || p.sigType == sigDirectKey) && p.flags&hasKeyFlags != 0 {
			primary = p
		}
	}
	return capable(&c.packets[0], primary)
}

// encrypts reports whether the algorithm of a key packet can encrypt (RFC 9580
// section 9.1, and ML-KEM composites).
func encrypts(body []byte) bool {
	if len(body) < 6 {
		return false
	}
	switch body[5] {
	case 1, 2, 16, 18, 25, 26, 35, 36:
		return true
	}
	return false
}
