package xfrm

import (
	"encoding"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
)

// AppendJSON appends a struct of this package, or a pointer to one, as a JSON
// object. Fields have the names of their json tags; values that are absent
// are left out; enumerations and flags appear by name, keys as "0x..." if
// o.Keys is set and as a placeholder otherwise. Only o.Keys of the options
// matters. json.Marshal of an [SA] does the same without keys, and
// json.Unmarshal reads both forms back (a placeholder as an empty key).
func AppendJSON(b []byte, v any, o TextOptions) ([]byte, error) {
	return appendJSON(b, reflect.ValueOf(v), o.Keys)
}

func appendJSON(b []byte, v reflect.Value, keys bool) ([]byte, error) {
	if !v.IsValid() {
		return append(b, "null"...), nil
	}
	switch x := v.Interface().(type) {
	case Key:
		return appendKeyJSON(b, x, keys), nil
	case netip.Addr, netip.Prefix:
		return appendText(b, x.(encoding.TextMarshaler))
	case Attr:
		d, err := x.MarshalJSON()
		return append(b, d...), err
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		return appendJSON(b, v.Elem(), keys)
	case reflect.Struct:
		if o, ok := v.Interface().(optional); ok {
			value, set := o.optional()
			if !set {
				return append(b, "null"...), nil
			}
			return appendJSON(b, reflect.ValueOf(value), keys)
		}
		return appendStructJSON(b, v, keys)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return strconv.AppendQuote(b, "0x"+hex.EncodeToString(v.Bytes())), nil
		}
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			var err error
			if b, err = appendJSON(b, v.Index(i), keys); err != nil {
				return b, err
			}
		}
		return append(b, ']'), nil
	}
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		return appendText(b, m)
	}
	d, err := json.Marshal(v.Interface())
	return append(b, d...), err
}

func appendText(b []byte, m encoding.TextMarshaler) ([]byte, error) {
	t, err := m.MarshalText()
	if err != nil {
		return b, err
	}
	d, err := json.Marshal(string(t))
	return append(b, d...), err
}

func appendKeyJSON(b []byte, k Key, keys bool) []byte {
	switch {
	case keys:
		b = append(b, `"0x`...)
		return append(hex.AppendEncode(b, k), '"')
	case len(k) == 0:
		return append(b, `""`...)
	}
	return append(b, `"hidden"`...)
}

func appendStructJSON(b []byte, v reflect.Value, keys bool) ([]byte, error) {
	t := v.Type()
	b = append(b, '{')
	first := true
	for i := range t.NumField() {
		f := t.Field(i)
		name, opt, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		x := v.Field(i)
		if name == "-" || !f.IsExported() || opt == "omitzero" && x.IsZero() || opt == "omitempty" && x.Len() == 0 {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = strconv.AppendQuote(b, name)
		b = append(b, ':')
		var err error
		if b, err = appendJSON(b, x, keys); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

// optional is implemented by every Opt.
type optional interface{ optional() (any, bool) }

func (o Opt[T]) optional() (any, bool) { return o.Value, o.Set }

// MarshalJSON gives the value, or null if it is absent.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.Set {
		return []byte("null"), nil
	}
	return appendJSON(nil, reflect.ValueOf(o.Value), false)
}

// UnmarshalJSON reads what MarshalJSON gives.
func (o *Opt[T]) UnmarshalJSON(b []byte) error {
	*o = Opt[T]{}
	if string(b) == "null" {
		return nil
	}
	o.Set = true
	return json.Unmarshal(b, &o.Value)
}

// MarshalJSON gives a placeholder: see [AppendJSON] for the key itself.
func (k Key) MarshalJSON() ([]byte, error) { return appendKeyJSON(nil, k, false), nil }

// UnmarshalJSON reads "0x" and hexadecimal digits. The placeholder gives an
// empty key.
func (k *Key) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) != nil {
		return &SyntaxError{What: "a key is a string"}
	}
	*k = nil
	if s == "" || s == "hidden" {
		return nil
	}
	h, ok := strings.CutPrefix(s, "0x")
	d, err := hex.DecodeString(h)
	if !ok || err != nil {
		return &SyntaxError{What: "a key is not hexadecimal"}
	}
	*k = d
	return nil
}

// jsonAttr is an attribute in JSON.
type jsonAttr struct {
	Type uint16 `json:"type"`
	Data string `json:"data"`
}

// MarshalJSON gives the type as a number and the content in hexadecimal.
func (a Attr) MarshalJSON() ([]byte, error) {
	return json.Marshal(jsonAttr{uint16(a.Type), "0x" + hex.EncodeToString(a.Data)})
}

// UnmarshalJSON reads what MarshalJSON gives.
func (a *Attr) UnmarshalJSON(b []byte) error {
	var j jsonAttr
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	h, ok := strings.CutPrefix(j.Data, "0x")
	d, err := hex.DecodeString(h)
	if !ok || err != nil {
		return &SyntaxError{What: "an attribute is not hexadecimal"}
	}
	a.Type, a.Data = AttrType(j.Type), d
	return nil
}
