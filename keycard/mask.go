package keycard

import (
	"encoding/hex"
	"strings"
	"time"
)

// LogEntry is one command and its answer as a log may show them: octets that
// carry a PIN, a private key or a decrypted secret are written as "xx".
type LogEntry struct {
	Command  string        // hexadecimal, masked
	Response string        // hexadecimal, masked, status word at the end; empty with Err
	Duration time.Duration // from the call of the transport to its return
	Err      error         // the transport's error, if any
}

// sensitive reports whether commands with this instruction may carry a secret.
func sensitive(ins byte) bool {
	switch ins {
	case insVerify, insChange, insReset, insPutData, insPutDataOdd, insPSO:
		return true
	}
	return false
}

// SecretData returns the range of octets [from,to) of an encoded command that
// carry a secret: PINs in VERIFY, CHANGE REFERENCE DATA and RESET RETRY
// COUNTER, keys in the odd PUT DATA, and in PUT DATA the resetting code (D3),
// the KDF object with its hashed PINs (F9) and symmetric keys (D1, D2, D5,
// F4). The range is empty when nothing is secret. Each part of a chained
// command is judged alone. What cannot be parsed counts as secret from its
// fifth octet on.
func SecretData(cmd []byte) (from, to int) {
	if len(cmd) < 5 {
		return 0, 0
	}
	switch cmd[1] {
	case insVerify, insChange, insReset, insPutDataOdd:
	case insPutData:
		switch uint16(cmd[2])<<8 | uint16(cmd[3]) {
		case doResetCode, doKDF, 0xd1, 0xd2, 0xd5, 0xf4:
		default:
			return 0, 0
		}
	default:
		return 0, 0
	}
	from, to = 4, len(cmd)
	if c, ext, err := ParseCommand(cmd); err == nil {
		if from = 5; ext {
			from = 7
		}
		to = from + len(c.Data)
	}
	return from, min(to, len(cmd))
}

// SecretResponse reports whether the response data to this encoded command
// is secret: what PSO: DECIPHER returns. GET RESPONSE answers belong to the
// command before it. The KDF object is none: everyone can read it, and the
// hashes in it are meant to be those of the default PINs.
func SecretResponse(cmd []byte) bool {
	return len(cmd) >= 4 && cmd[1] == insPSO && cmd[2] == 0x80
}

// MaskCommand writes an encoded command in hexadecimal with the octets named
// by [SecretData] as "xx".
func MaskCommand(cmd []byte) string {
	from, to := SecretData(cmd)
	return hex.EncodeToString(cmd[:from]) + strings.Repeat("xx", to-from) + hex.EncodeToString(cmd[to:])
}

func maskResponse(r []byte, secret bool) string {
	if secret && len(r) > 2 {
		return strings.Repeat("xx", len(r)-2) + hex.EncodeToString(r[len(r)-2:])
	}
	return hex.EncodeToString(r)
}
