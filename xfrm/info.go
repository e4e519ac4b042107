package xfrm

// Default says what happens to packets that no policy covers, by direction.
type Default struct {
	In  DefaultAction `json:"in"`
	Fwd DefaultAction `json:"fwd"`
	Out DefaultAction `json:"out"`
}

// AppendSetDefault appends a request to change the defaults. DefaultKeep
// leaves one as it is.
func AppendSetDefault(b []byte, h Header, d Default) []byte {
	return appendDefault(b, SetDefault, h, d)
}

// AppendGetDefault appends a request for the defaults.
func AppendGetDefault(b []byte, h Header) []byte { return appendDefault(b, GetDefault, h, Default{}) }

func appendDefault(b []byte, t MsgType, h Header, d Default) []byte {
	start := len(b)
	b, p := begin(b, t, h, sizeDefault)
	p[0], p[1], p[2] = byte(d.In), byte(d.Fwd), byte(d.Out)
	return finish(b, start)
}

// Parse reads a SETDEFAULT request, or the GETDEFAULT message with which the
// kernel answers and notifies.
func (d *Default) Parse(m Message) error {
	if m.Type != SetDefault && m.Type != GetDefault {
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	if _, err := m.attrs(m.Type); err != nil {
		return err
	}
	*d = Default{DefaultAction(m.Body[0]), DefaultAction(m.Body[1]), DefaultAction(m.Body[2])}
	return nil
}

// SADInfo counts the states.
type SADInfo struct {
	Count      uint32 `json:"count"`
	Buckets    uint32 `json:"buckets"`     // of the hash table
	MaxBuckets uint32 `json:"max_buckets"` // to which it may grow
}

// infoFlags is what iproute2 puts into the 32 bits of an information
// request: everything. The kernel echoes them and looks at nothing.
const infoFlags = 0xffffffff

func appendInfo(b []byte, t MsgType, h Header) ([]byte, int) {
	start := len(b)
	b, p := begin(b, t, h, 4)
	ne.PutUint32(p, infoFlags)
	return finish(b, start), start
}

// AppendGetSADInfo appends a request for the number of states.
func AppendGetSADInfo(b []byte, h Header) []byte {
	b, _ = appendInfo(b, GetSADInfo, h)
	return b
}

// AppendNewSADInfo appends the kernel's answer, which only tests and
// simulators send.
func AppendNewSADInfo(b []byte, h Header, i *SADInfo) []byte {
	b, start := appendInfo(b, NewSADInfo, h)
	b = appendU32(b, attrSADCount, i.Count)
	b, p := appendAttr(b, attrSADHash, 8)
	ne.PutUint32(p, i.Buckets)
	ne.PutUint32(p[4:], i.MaxBuckets)
	return finish(b, start)
}

// Attributes of the information messages, which have their own numbers.
const (
	attrSADCount    AttrType = 1
	attrSADHash     AttrType = 2
	attrSPDInfo     AttrType = 1
	attrSPDHash     AttrType = 2
	attrSPDThresh4  AttrType = 3
	attrSPDThresh6  AttrType = 4
	sizeSPDInfo              = 24
	sizeInfoHash             = 8
	sizeInfoThresh           = 2
	sizeInfoSADInfo          = 4
)

// infoAttrs walks the attributes of an information message.
func infoAttrs(m Message, want MsgType, f func(t AttrType, d []byte) (least int)) error {
	if m.Type != want {
		return &FormatError{Type: m.Type, Err: ErrType}
	}
	b, err := m.attrs(want)
	if err != nil {
		return err
	}
	for len(b) >= 4 {
		t, d, n := nextAttr(b)
		if n == 0 {
			return &FormatError{Type: want, Field: "attribute", Err: ErrLength}
		}
		if len(d) < f(t, d) {
			return &FormatError{Type: want, Field: "attribute", Err: ErrShort}
		}
		b = b[n:]
	}
	return nil
}

// Parse reads a NEWSADINFO message.
func (i *SADInfo) Parse(m Message) error {
	*i = SADInfo{}
	return infoAttrs(m, NewSADInfo, func(t AttrType, d []byte) int {
		switch t {
		case attrSADCount:
			if len(d) >= sizeInfoSADInfo {
				i.Count = ne.Uint32(d)
			}
			return sizeInfoSADInfo
		case attrSADHash:
			if len(d) >= sizeInfoHash {
				i.Buckets, i.MaxBuckets = ne.Uint32(d), ne.Uint32(d[4:])
			}
			return sizeInfoHash
		}
		return 0
	})
}

// Thresholds are prefix lengths in bits: policies whose local and remote
// prefixes are at least so long are hashed, the others are searched one by one.
type Thresholds struct {
	Local  uint8 `json:"local"`
	Remote uint8 `json:"remote"`
}

// SPDInfo counts the policies, by direction.
type SPDInfo struct {
	In         uint32          `json:"in"`
	Out        uint32          `json:"out"`
	Fwd        uint32          `json:"fwd"`
	SocketIn   uint32          `json:"socket_in"` // of sockets
	SocketOut  uint32          `json:"socket_out"`
	SocketFwd  uint32          `json:"socket_fwd"`
	Buckets    uint32          `json:"buckets"`     // of the hash table
	MaxBuckets uint32          `json:"max_buckets"` // to which it may grow
	Hash4      Opt[Thresholds] `json:"hthresh4,omitzero"`
	Hash6      Opt[Thresholds] `json:"hthresh6,omitzero"`
}

// AppendGetSPDInfo appends a request for the number of policies.
func AppendGetSPDInfo(b []byte, h Header) []byte {
	b, _ = appendInfo(b, GetSPDInfo, h)
	return b
}

// AppendSetSPDInfo appends a request to set hash thresholds, each if present:
// at most 32 bits for IPv4 and 128 for IPv6.
func AppendSetSPDInfo(b []byte, h Header, hash4, hash6 Opt[Thresholds]) []byte {
	b, start := appendInfo(b, NewSPDInfo, h)
	b = appendThresholds(b, attrSPDThresh4, hash4)
	b = appendThresholds(b, attrSPDThresh6, hash6)
	return finish(b, start)
}

func appendThresholds(b []byte, t AttrType, h Opt[Thresholds]) []byte {
	if !h.Set {
		return b
	}
	b, p := appendAttr(b, t, sizeInfoThresh)
	p[0], p[1] = h.Value.Local, h.Value.Remote
	return b
}

// AppendNewSPDInfo appends the kernel's answer, which only tests and
// simulators send.
func AppendNewSPDInfo(b []byte, h Header, i *SPDInfo) []byte {
	b, start := appendInfo(b, NewSPDInfo, h)
	b, p := appendAttr(b, attrSPDInfo, sizeSPDInfo)
	for n, v := range [...]uint32{i.In, i.Out, i.Fwd, i.SocketIn, i.SocketOut, i.SocketFwd} {
		ne.PutUint32(p[4*n:], v)
	}
	b, p = appendAttr(b, attrSPDHash, sizeInfoHash)
	ne.PutUint32(p, i.Buckets)
	ne.PutUint32(p[4:], i.MaxBuckets)
	b = appendThresholds(b, attrSPDThresh4, i.Hash4)
	b = appendThresholds(b, attrSPDThresh6, i.Hash6)
	return finish(b, start)
}

// Parse reads a NEWSPDINFO message.
func (i *SPDInfo) Parse(m Message) error {
	*i = SPDInfo{}
	return infoAttrs(m, NewSPDInfo, func(t AttrType, d []byte) int {
		switch t {
		case attrSPDInfo:
			if len(d) >= sizeSPDInfo {
				i.In, i.Out, i.Fwd = ne.Uint32(d), ne.Uint32(d[4:]), ne.Uint32(d[8:])
				i.SocketIn, i.SocketOut, i.SocketFwd = ne.Uint32(d[12:]), ne.Uint32(d[16:]), ne.Uint32(d[20:])
			}
			return sizeSPDInfo
		case attrSPDHash:
			if len(d) >= sizeInfoHash {
				i.Buckets, i.MaxBuckets = ne.Uint32(d), ne.Uint32(d[4:])
			}
			return sizeInfoHash
		case attrSPDThresh4, attrSPDThresh6:
			if len(d) >= sizeInfoThresh {
				h := Some(Thresholds{d[0], d[1]})
				if t == attrSPDThresh4 {
					i.Hash4 = h
				} else {
					i.Hash6 = h
				}
			}
			return sizeInfoThresh
		}
		return 0
	})
}
