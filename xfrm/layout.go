package xfrm

// Sizes of the kernel's structures. They are the same on every system but
// those that align 64-bit integers to 4 octets, which of Go's targets only
// 386 does: there structures that end in padding are shorter by tailPad.
const (
	sizeHeader    = 16
	sizeSelector  = 56
	sizeID        = 24
	sizeLftCfg    = 64
	sizeLftCur    = 32
	sizeSA        = 224 - tailPad
	sizeSAID      = 24
	sizeSPI       = sizeSA + 8
	sizePolicy    = 168 - tailPad
	sizePolicyID  = 64
	sizeTmpl      = 64
	sizeAcquire   = 40 + sizeSelector + sizePolicy + 16
	sizeExpire    = sizeSA + 8 - tailPad
	sizePolExpire = sizePolicy + 8 - tailPad
	sizeAE        = 48
	sizeReport    = 60
	sizeMapping   = 64
	sizeMigrate   = 76
	sizeMigState  = 132
	sizeKMAddress = 40
	sizeEncap     = 24
	sizeAlgo      = 68
	sizeAlgoAuth  = 72
	sizeESN       = 24
	sizeFilter    = 36
	sizeOffload   = 8
	sizeSecCtx    = 8
	sizePolType   = 6
	sizeDefault   = 3
)

// Offsets in struct xfrm_usersa_info and struct xfrm_userpolicy_info.
const (
	saID, saSrc, saLft, saCur, saStats = 56, 80, 96, 160, 192
	saSeq, saReqID, saFamily, saMode   = 204, 208, 212, 214
	saWindow, saFlags                  = 215, 216
	polLft, polCur, polPriority        = 56, 120, 152
	polIndex, polDir, polAction        = 156, 160, 161
	polFlags, polShare                 = 162, 163
)

// fixed is the length of the part before the attributes for each message
// type, in the order of the types.
var fixed = [...]int{sizeSA, sizeSAID, sizeSAID, sizePolicy, sizePolicyID, sizePolicyID, sizeSPI, sizeAcquire,
	sizeExpire, sizePolicy, sizeSA, sizePolExpire, 1, 0, sizeAE, sizeAE, sizeReport, sizePolicyID, 4, 4, 4, 4,
	sizeMapping, sizeDefault, sizeDefault, sizeMigState}
