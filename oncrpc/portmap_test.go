package oncrpc

import (
	"bytes"
	"errors"
	"slices"
	"testing"
)

var pmapList = []Mapping{{100003, 3, ProtTCP, 2049}, {100005, 3, ProtUDP, 635}}

const pmapDump = `
	00000001 000186a3 00000003 00000006 00000801   one: NFS v3, TCP, 2049
	00000001 000186a5 00000003 00000011 0000027b   one more: MOUNT v3, UDP, 635
	00000000                                       and no more`

func TestMappingHasTheOctetsOfTheSpecification(t *testing.T) {
	want := unhex(t, "000186a3 00000003 00000006 00000801")
	e := NewEncoder(nil)
	pmapList[0].Encode(&e)
	if got, err := e.Finish(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got % x, %v", got, err)
	}
	var m Mapping
	d := NewDecoder(want, "SET arguments")
	m.Decode(&d)
	if err := d.End(); err != nil || m != pmapList[0] {
		t.Errorf("got %v, %v", m, err)
	}
	for want, m := range map[string]Mapping{
		"program 100003 version 3: TCP port 2049":      pmapList[0],
		"program 100005 version 3: UDP port 635":       pmapList[1],
		"program 100003 version 4: protocol 0 port 12": {100003, 4, 0, 12},
	} {
		if got := m.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestDumpIsAListOfMappings(t *testing.T) {
	want := annotated(t, pmapDump)
	e := NewEncoder(nil)
	EncodeMappings(&e, pmapList)
	if got, err := e.Finish(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got % x, %v", got, err)
	}
	before := []Mapping{{Prog: 1}}
	got, err := ParseMappings(before, want, 2)
	if err != nil || !slices.Equal(got, append(before, pmapList...)) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, c := range []struct {
		name   string
		wire   []byte
		limit  int
		kind   error
		offset int
	}{
		{"too many", want, 1, ErrLimit, 20},
		{"no end", want[:40], 9, ErrShort, 40},
		{"cut off", want[:39], 9, ErrShort, 36},
		{"neither an entry nor the end", append(want[:40:40], 0, 0, 0, 2), 9, ErrValue, 40},
		{"octets behind the end", append(want[:44:44], 0), 9, ErrTrailing, 44},
	} {
		got, err := ParseMappings(before, c.wire, c.limit)
		if !slices.Equal(got, before) {
			t.Errorf("%s: got %v", c.name, got)
		}
		wantDecodeError(t, err, c.kind, c.offset)
	}
}

func TestGetPortTakesPortsOnly(t *testing.T) {
	for _, c := range []struct {
		wire string
		port uint16
		kind error // nil: none
	}{
		{"00000801", 2049, nil},
		{"0000ffff", 65535, nil},
		{"00000000", 0, nil},
		{"00010000", 0, ErrValue},
		{"000008", 0, ErrShort},
		{"00000801 00", 0, ErrTrailing},
	} {
		if port, err := ParsePort(unhex(t, c.wire)); port != c.port || !errors.Is(err, c.kind) {
			t.Errorf("%s: %d, %v", c.wire, port, err)
		}
	}
}

func TestCallItCarriesACallAndItsResult(t *testing.T) {
	call := CallIt{100003, 3, 0, []byte("abcd")}
	want := unhex(t, "000186a3 00000003 00000000 00000004 61626364")
	e := NewEncoder(nil)
	call.Encode(&e, 4)
	if got, err := e.Finish(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got % x, %v", got, err)
	}
	var c CallIt
	d := NewDecoder(want, "CALLIT arguments")
	c.Decode(&d, 4)
	if err := d.End(); err != nil || c.Prog != 100003 || c.Vers != 3 || c.Proc != 0 || string(c.Args) != "abcd" {
		t.Errorf("got %+v, %v", c, err)
	}
	d = NewDecoder(want, "CALLIT arguments")
	c.Decode(&d, 3)
	wantDecodeError(t, d.Err(), ErrLimit, 12)

	result := CallItResult{2049, []byte("ab")}
	want = unhex(t, "00000801 00000002 61620000")
	e = NewEncoder(nil)
	result.Encode(&e, 4)
	if got, err := e.Finish(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got % x, %v", got, err)
	}
	var r CallItResult
	d = NewDecoder(want, "CALLIT result")
	r.Decode(&d, 4)
	if err := d.End(); err != nil || r.Port != 2049 || string(r.Res) != "ab" {
		t.Errorf("got %+v, %v", r, err)
	}
	d = NewDecoder(want, "CALLIT result")
	r.Decode(&d, 1)
	wantDecodeError(t, d.Err(), ErrLimit, 4)
}
