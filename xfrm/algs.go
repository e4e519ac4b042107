package xfrm

import "slices"

// Constructors of algorithms whose parameters cannot be wrong.

// AESGCM16 returns AES-GCM with an ICV of 128 bits (RFC 4106): a key of 16, 24
// or 32 octets followed by a salt of 4.
func AESGCM16(keyAndSalt []byte) (AEAD, error) {
	return newAEAD("rfc4106(gcm(aes))", keyAndSalt, 128)
}

// AESCCM16 returns AES-CCM with an ICV of 128 bits (RFC 4309): a key of 16, 24
// or 32 octets followed by a salt of 3.
func AESCCM16(keyAndSalt []byte) (AEAD, error) {
	return newAEAD("rfc4309(ccm(aes))", keyAndSalt, 128)
}

// AESGMAC returns AES-GMAC (RFC 4543), which authenticates and does not
// encrypt: a key of 16, 24 or 32 octets followed by a salt of 4.
func AESGMAC(keyAndSalt []byte) (AEAD, error) { return newAEAD("rfc4543(gcm(aes))", keyAndSalt, 128) }

// ChaCha20Poly1305 returns ChaCha20-Poly1305 (RFC 7634): a key of 32 octets
// followed by a salt of 4.
func ChaCha20Poly1305(keyAndSalt []byte) (AEAD, error) {
	return newAEAD("rfc7539esp(chacha20,poly1305)", keyAndSalt, 128)
}

func newAEAD(name string, key []byte, icv uint32) (AEAD, error) {
	a := AEAD{Name: name, Key: slices.Clone(key), ICVBits: icv}
	if err := checkAEAD(&a); err != nil {
		a.Key.Clear()
		return AEAD{}, err
	}
	return a, nil
}

// AESCBC returns AES in CBC mode (RFC 3602): a key of 16, 24 or 32 octets. It
// needs an [Auth] beside it.
func AESCBC(key []byte) (Algorithm, error) { return newCipher("cbc(aes)", key) }

// AESCTR returns AES in counter mode (RFC 3686): a key of 16, 24 or 32 octets
// followed by a nonce of 4. It needs an [Auth] beside it.
func AESCTR(keyAndNonce []byte) (Algorithm, error) {
	return newCipher("rfc3686(ctr(aes))", keyAndNonce)
}

func newCipher(name string, key []byte) (Algorithm, error) {
	a := Algorithm{Name: name, Key: slices.Clone(key)}
	if err := checkCipher(&a); err != nil {
		a.Key.Clear()
		return Algorithm{}, err
	}
	return a, nil
}

// HMACSHA256 returns HMAC-SHA-256 with a key of 32 octets and the truncation
// of 128 bits that RFC 4868 demands. The kernel by itself would take 96.
func HMACSHA256(key []byte) (Auth, error) { return newAuth("hmac(sha256)", key, 32, 128) }

// HMACSHA384 returns HMAC-SHA-384 with a key of 48 octets and a truncation of
// 192 bits (RFC 4868).
func HMACSHA384(key []byte) (Auth, error) { return newAuth("hmac(sha384)", key, 48, 192) }

// HMACSHA512 returns HMAC-SHA-512 with a key of 64 octets and a truncation of
// 256 bits (RFC 4868).
func HMACSHA512(key []byte) (Auth, error) { return newAuth("hmac(sha512)", key, 64, 256) }

// HMACSHA1 returns HMAC-SHA-1 with a key of 20 octets and a truncation of 96
// bits (RFC 2404), for old peers.
func HMACSHA1(key []byte) (Auth, error) { return newAuth("hmac(sha1)", key, 20, 96) }

// AESXCBC returns AES-XCBC-MAC with a key of 16 octets and a truncation of 96
// bits (RFC 3566).
func AESXCBC(key []byte) (Auth, error) { return newAuth("xcbc(aes)", key, 16, 96) }

// AESCMAC returns AES-CMAC with a key of 16 octets and a truncation of 96 bits
// (RFC 4494).
func AESCMAC(key []byte) (Auth, error) { return newAuth("cmac(aes)", key, 16, 96) }

func newAuth(name string, key []byte, size int, trunc uint32) (Auth, error) {
	if len(key) != size {
		return Auth{}, &RuleError{Field: "Auth.Key", Rule: "wrong length for " + name}
	}
	return Auth{Name: name, Key: slices.Clone(key), TruncBits: trunc}, nil
}

// NullCipher returns the cipher that does nothing (RFC 2410), for
// measurements and for authentication alone.
func NullCipher() Algorithm { return Algorithm{Name: "ecb(cipher_null)"} }

// NullAuth returns the authentication that proves nothing, for measurements.
func NullAuth() Auth { return Auth{Name: "digest_null"} }

// aeadInfo says which ICV and key lengths an AEAD algorithm has.
type aeadInfo struct {
	name string
	icvs []uint32
	keys []int // octets, salt included
}

// aeads is never changed.
var aeads = []aeadInfo{
	{"rfc4106(gcm(aes))", []uint32{64, 96, 128}, []int{20, 28, 36}},
	{"rfc4309(ccm(aes))", []uint32{64, 96, 128}, []int{19, 27, 35}},
	{"rfc4543(gcm(aes))", []uint32{128}, []int{20, 28, 36}},
	{"rfc7539esp(chacha20,poly1305)", []uint32{128}, []int{36}},
}

const ruleCrypto = "Kernel was unable to initialize cryptographic operations"

func checkAEAD(a *AEAD) error {
	for _, i := range aeads {
		if i.name != a.Name {
			continue
		}
		switch {
		case !slices.Contains(i.icvs, a.ICVBits):
			return &RuleError{Field: "AEAD.ICVBits", Rule: "Requested AEAD algorithm not found"}
		case !slices.Contains(i.keys, len(a.Key)):
			return &RuleError{Field: "AEAD.Key", Rule: ruleCrypto}
		}
		return nil
	}
	return &RuleError{Field: "AEAD.Name", Rule: "Requested AEAD algorithm not found"}
}

// cipherInfo says which key lengths a cipher has, in octets.
type cipherInfo struct {
	name, alias string
	least, most int
	step        int
}

// ciphers is never changed.
var ciphers = []cipherInfo{
	{"cbc(aes)", "aes", 16, 32, 8},
	{"rfc3686(ctr(aes))", "", 20, 36, 8},
	{"ecb(cipher_null)", "cipher_null", 0, 0, 1},
	{"cbc(des3_ede)", "des3_ede", 24, 24, 1},
	{"cbc(des)", "des", 8, 8, 1},
	{"cbc(cast5)", "cast5", 5, 16, 1},
	{"cbc(blowfish)", "blowfish", 4, 56, 1},
	{"cbc(serpent)", "serpent", 0, 32, 1},
	{"cbc(twofish)", "twofish", 16, 32, 8},
	{"cbc(camellia)", "camellia", 16, 32, 8},
	{"cbc(sm4)", "sm4", 16, 16, 1},
}

func checkCipher(a *Algorithm) error {
	for _, i := range ciphers {
		if a.Name != i.name && (i.alias == "" || a.Name != i.alias) {
			continue
		}
		if n := len(a.Key); n < i.least || n > i.most || (n-i.least)%i.step != 0 {
			return &RuleError{Field: "Cipher.Key", Rule: ruleCrypto}
		}
		return nil
	}
	return &RuleError{Field: "Cipher.Name", Rule: "Requested CRYPT algorithm not found"}
}

// null reports whether a cipher or authentication is named that does nothing.
func nullCipher(name string) bool { return name == "ecb(cipher_null)" || name == "cipher_null" }

// authInfo says how long an authentication's value is, whole and as the
// kernel truncates it, and its key if that is fixed (0: any).
type authInfo struct {
	name, alias string
	full, trunc uint32
	key         []int
}

// auths is never changed.
var auths = []authInfo{
	{"digest_null", "", 0, 0, []int{0}},
	{"hmac(md5)", "md5", 128, 96, nil},
	{"hmac(sha1)", "sha1", 160, 96, nil},
	{"hmac(sha256)", "sha256", 256, 96, nil},
	{"hmac(sha384)", "", 384, 192, nil},
	{"hmac(sha512)", "", 512, 256, nil},
	{"hmac(rmd160)", "rmd160", 160, 96, nil},
	{"hmac(sm3)", "sm3", 256, 256, nil},
	{"xcbc(aes)", "", 128, 96, []int{16}},
	{"cmac(aes)", "", 128, 96, []int{16, 24, 32}},
}

func findAuth(name string) (authInfo, bool) {
	for _, i := range auths {
		if name == i.name || i.alias != "" && name == i.alias {
			return i, true
		}
	}
	return authInfo{}, false
}

// checkAuth applies the kernel's rules.
func checkAuth(a *Auth) error {
	i, ok := findAuth(a.Name)
	switch {
	case !ok && a.Legacy:
		return &RuleError{Field: "Auth.Name", Rule: "Requested AUTH algorithm not found"}
	case !ok:
		return &RuleError{Field: "Auth.Name", Rule: "Requested AUTH_TRUNC algorithm not found"}
	case a.TruncBits > i.full:
		return &RuleError{Field: "Auth.TruncBits", Rule: "Invalid length requested for truncated ICV"}
	case i.key != nil && !slices.Contains(i.key, len(a.Key)):
		return &RuleError{Field: "Auth.Key", Rule: ruleCrypto}
	}
	return nil
}

// NewInbound returns a copy of the state as an inbound one with a replay
// window of so many packets, from 1 to 4096 (else a [*RuleError]): SA_DIR is
// set to in. To go without protection against replay, set Dir and leave Replay
// at [NoReplayWindow] instead of calling this. The copy shares the keys.
func NewInbound(s SA, window uint32) (SA, error) {
	r, err := NewReplay(window)
	if err != nil {
		return SA{}, err
	}
	s.Dir, s.Replay = SAIn, r
	return s, nil
}

// NewOutbound returns a copy of the state as an outbound one: SA_DIR is set to
// out and the replay window to 0, as the kernel demands then. The copy shares
// the keys.
func NewOutbound(s SA) SA {
	s.Dir, s.Replay = SAOut, NoReplayWindow()
	return s
}
