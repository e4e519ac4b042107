package xfrm

import (
	"slices"
	"strconv"
	"strings"
)

// unmarshalEnum finds the value whose name is given among the first most
// ones, or reads a number.
func unmarshalEnum[T ~uint8 | ~uint16 | ~uint32](v *T, text []byte, most int, name func(T) string) error {
	s := string(text)
	for i := range most {
		if name(T(i)) == s {
			*v = T(i)
			return nil
		}
	}
	n, err := strconv.ParseUint(s, 0, 32)
	if err != nil || uint64(T(n)) != n {
		return &SyntaxError{Word: s, What: "unknown name"}
	}
	*v = T(n)
	return nil
}

// unmarshalFlags reads names and numbers separated by spaces.
func unmarshalFlags[T ~uint8 | ~uint32](v *T, text []byte, names []string) error {
	var f uint64
	for w := range strings.FieldsSeq(string(text)) {
		if i := slices.Index(names, w); i >= 0 {
			f |= 1 << i
			continue
		}
		n, err := strconv.ParseUint(w, 0, 32)
		if err != nil {
			return &SyntaxError{Word: w, What: "unknown flag"}
		}
		f |= n
	}
	if uint64(T(f)) != f {
		return &SyntaxError{What: "too many flags"}
	}
	*v = T(f)
	return nil
}

// MarshalText gives the name, or the number of a value without one.
func (x MsgType) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads a name or number.
func (x *MsgType) UnmarshalText(b []byte) error { return unmarshalEnum(x, b, 64, MsgType.String) }

// MarshalText gives the name, or the number of a value without one.
func (x AttrType) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads a name or number.
func (x *AttrType) UnmarshalText(b []byte) error { return unmarshalEnum(x, b, 64, AttrType.String) }

// MarshalText gives the name, or the number of a value without one.
func (x Group) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads a name or number.
func (x *Group) UnmarshalText(b []byte) error { return unmarshalEnum(x, b, 16, Group.String) }

// MarshalText gives the name, or the number of a value without one.
func (x Family) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads a name or number.
func (x *Family) UnmarshalText(b []byte) error { return unmarshalEnum(x, b, 16, Family.String) }

// MarshalText gives the name, or the number of a value without one.
func (x Proto) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads a name or number.
func (x *Proto) UnmarshalText(b []byte) error { return unmarshalEnum(x, b, 256, Proto.String) }

// MarshalText gives the name, or the number of a value without one.
func (x Mode) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads a name or number.
func (x *Mode) UnmarshalText(b []byte) error { return unmarshalEnum(x, b, 16, Mode.String) }

// MarshalText gives the name, or the number of a value without one.
func (x Dir) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads a name or number.
func (x *Dir) UnmarshalText(b []byte) error { return unmarshalEnum(x, b, 8, Dir.String) }

// MarshalText gives the name, or the number of a value without one.
func (x SADir) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads a name or number.
func (x *SADir) UnmarshalText(b []byte) error { return unmarshalEnum(x, b, 4, SADir.String) }

// MarshalText gives the name, or the number of a value without one.
func (x PolicyType) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads a name or number.
func (x *PolicyType) UnmarshalText(b []byte) error { return unmarshalEnum(x, b, 4, PolicyType.String) }

// MarshalText gives the name, or the number of a value without one.
func (x Action) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads a name or number.
func (x *Action) UnmarshalText(b []byte) error { return unmarshalEnum(x, b, 4, Action.String) }

// MarshalText gives the name, or the number of a value without one.
func (x Share) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads a name or number.
func (x *Share) UnmarshalText(b []byte) error { return unmarshalEnum(x, b, 8, Share.String) }

// MarshalText gives the name, or the number of a value without one.
func (x Level) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads a name or number.
func (x *Level) UnmarshalText(b []byte) error { return unmarshalEnum(x, b, 4, Level.String) }

// MarshalText gives the name, or the number of a value without one.
func (x EncapType) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads a name or number.
func (x *EncapType) UnmarshalText(b []byte) error { return unmarshalEnum(x, b, 16, EncapType.String) }

// MarshalText gives the name, or the number of a value without one.
func (x DefaultAction) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads a name or number.
func (x *DefaultAction) UnmarshalText(b []byte) error {
	return unmarshalEnum(x, b, 4, DefaultAction.String)
}

// MarshalText gives the names of the flags, separated by spaces.
func (x SAFlags) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads names and numbers separated by spaces.
func (x *SAFlags) UnmarshalText(b []byte) error { return unmarshalFlags(x, b, saFlagNames) }

// MarshalText gives the names of the flags, separated by spaces.
func (x ExtraFlags) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads names and numbers separated by spaces.
func (x *ExtraFlags) UnmarshalText(b []byte) error { return unmarshalFlags(x, b, extraFlagNames) }

// MarshalText gives the names of the flags, separated by spaces.
func (x PolicyFlags) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads names and numbers separated by spaces.
func (x *PolicyFlags) UnmarshalText(b []byte) error { return unmarshalFlags(x, b, policyFlagNames) }

// MarshalText gives the names of the flags, separated by spaces.
func (x AEFlags) MarshalText() ([]byte, error) { return []byte(x.String()), nil }

// UnmarshalText reads names and numbers separated by spaces.
func (x *AEFlags) UnmarshalText(b []byte) error { return unmarshalFlags(x, b, aeFlagNames) }
