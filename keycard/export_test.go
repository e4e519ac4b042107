package keycard

// Buffer is the whole buffer that commands are built in.
func (c *Card) Buffer() []byte { return c.s.buf[:cap(c.s.buf)] }

var (
	ATRHistorical = atrHistorical
	DERSignature  = derSignature
	FixedWidth    = fixedWidth
)
