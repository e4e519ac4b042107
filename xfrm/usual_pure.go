//go:build !gc || !go1.26 || go1.27 || purego || !(amd64 || arm64)

package xfrm

// parseMessage is Parse.
func (s *SA) parseMessage(t MsgType, body []byte) error { return s.parseAny(t, body) }
