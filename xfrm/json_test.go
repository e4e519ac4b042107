package xfrm

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// TestJSONThereAndBack writes every event as JSON, with keys, and reads it
// back with encoding/json.
func TestJSONThereAndBack(t *testing.T) {
	for _, e := range sampleEvents() {
		b, err := AppendJSON(nil, e, TextOptions{Keys: true})
		if err != nil || !json.Valid(b) {
			t.Errorf("%T: %s, %v", e, b, err)
			continue
		}
		got := reflect.New(reflect.TypeOf(e).Elem()).Interface()
		if err := json.Unmarshal(b, got); err != nil {
			t.Errorf("%T: %v in %s", e, err, b)
			continue
		}
		if !reflect.DeepEqual(got, e) {
			t.Errorf("%T:\n got %+v\nwant %+v\n%s", e, got, e, b)
		}
	}
}

func TestJSONHidesKeys(t *testing.T) {
	s := gcmSA()
	s.AEAD.Key = Key("sixteen octets salt!")
	s.Other = []Attr{{60, []byte{1, 2}}}
	hidden, err := AppendJSON(nil, &s, TextOptions{})
	if err != nil {
		t.Fatal(err)
	}
	std, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	if string(std) != string(hidden) {
		t.Errorf("json.Marshal and AppendJSON differ:\n%s\n%s", std, hidden)
	}
	open, err := AppendJSON(nil, &s, TextOptions{Keys: true})
	if err != nil {
		t.Fatal(err)
	}
	const hex = "7369787465656e"
	if strings.Contains(string(hidden), hex) || !strings.Contains(string(open), hex) {
		t.Errorf("hidden %s\nopen %s", hidden, open)
	}
	if want := `"attr`; strings.Contains(string(hidden), want) {
		t.Error(string(hidden))
	}
	if !strings.Contains(string(hidden), `"other":[{"type":60,"data":"0x0102"}]`) {
		t.Error(string(hidden))
	}
}
