package oncrpc

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestAuthOfAnyFlavorPassesThrough(t *testing.T) {
	for name, c := range map[string]struct {
		auth OpaqueAuth
		wire string // flavor, length, body and roundup
	}{
		"AUTH_NONE":         {OpaqueAuth{}, "00000000 00000000"},
		"AUTH_NONE, filled": {OpaqueAuth{FlavorNone, []byte{1}}, "00000000 00000001 01000000"}, // RFC 5531 §10.1: undefined, not forbidden
		"RPCSEC_GSS":        {OpaqueAuth{FlavorGSS, []byte{1, 2, 3, 4, 5}}, "00000006 00000005 0102030405 000000"},
		"private":           {OpaqueAuth{0xfffffffe, bytes.Repeat([]byte{7}, 400)}, "fffffffe 00000190 " + strings.Repeat("07", 400)},
	} {
		t.Run(name, func(t *testing.T) {
			want := unhex(t, c.wire)
			e := NewEncoder(nil)
			c.auth.Encode(&e)
			if got, err := e.Finish(); err != nil || !bytes.Equal(got, want) || c.auth.Len() != len(want) {
				t.Errorf("got % x, %v, Len %d\nwant % x", got, err, c.auth.Len(), want)
			}
			var a OpaqueAuth
			d := NewDecoder(want, "auth")
			a.Decode(&d)
			if err := d.End(); err != nil || a.Flavor != c.auth.Flavor || !bytes.Equal(a.Body, c.auth.Body) {
				t.Errorf("got %v, %v", a, err)
			}
		})
	}
}

func TestAuthBodiesEndAt400Octets(t *testing.T) {
	a := OpaqueAuth{FlavorGSS, make([]byte, 401)}
	e := NewEncoder(nil)
	a.Encode(&e)
	if _, err := e.Finish(); !errors.Is(err, ErrLimit) {
		t.Errorf("encoded: %v", err)
	}
	d := NewDecoder(append(unhex(t, "00000006 00000191"), make([]byte, 404)...), "auth")
	a.Decode(&d)
	wantDecodeError(t, d.Err(), ErrLimit, 4)
}

func TestFlavorsHaveTheirNames(t *testing.T) {
	for f, want := range map[Flavor]string{0: "AUTH_NONE", 1: "AUTH_SYS", 2: "AUTH_SHORT", 3: "AUTH_DH", 6: "RPCSEC_GSS", 7: "AUTH_TLS", 390003: "auth_flavor 390003"} {
		if got := f.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// authSysWire is the body of the credential authSys.
const authSysWire = `
	01020304 00000007 6b727970746f6e 00   stamp, "krypton" and roundup
	000003e8 00000064                     uid 1000, gid 100
	00000002 00000004 0000001b            two gids: 4, 27`

func authSys() AuthSys {
	return AuthSys{Stamp: 0x01020304, MachineName: "krypton", UID: 1000, GID: 100, GIDs: []uint32{4, 27}}
}

// annotated is unhex without what follows three blanks in a line.
func annotated(t testing.TB, s string) []byte {
	var words strings.Builder
	for line := range strings.Lines(s) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "   ")
		words.WriteString(line)
	}
	return unhex(t, words.String())
}

func TestAuthSysHasTheOctetsOfAppendixA(t *testing.T) {
	want := annotated(t, authSysWire)
	a := authSys()
	if got, err := a.Append(nil); err != nil || !bytes.Equal(got, want) || a.Len() != len(want) {
		t.Errorf("got  % x, %v, Len %d\nwant % x", got, err, a.Len(), want)
	}
	var got AuthSys
	if err := got.Parse(want); err != nil || !reflect.DeepEqual(got, a) {
		t.Errorf("got %+v, %v", got, err)
	}
	full := AuthSys{MachineName: strings.Repeat("m", 255), GIDs: make([]uint32, 16)}
	b, err := full.Append(nil)
	if err != nil || len(b) != 340 || full.Len() != 340 {
		t.Errorf("the largest has %d octets, Len %d, %v", len(b), full.Len(), err)
	}
	if err := got.Parse(b); err != nil || !reflect.DeepEqual(got, full) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAuthSysWithinNoLimitsIsNotSent(t *testing.T) {
	for name, a := range map[string]AuthSys{
		"name": {MachineName: strings.Repeat("m", 256)},
		"gids": {GIDs: make([]uint32, 17)},
	} {
		if b, err := a.Append([]byte("before")); !errors.Is(err, ErrLimit) || string(b) != "before" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

func TestABadAuthSysIsAnsweredWithBadCred(t *testing.T) {
	good := annotated(t, authSysWire)
	long := AuthSys{GIDs: make([]uint32, 16)}
	seventeen, _ := long.Append(nil)
	seventeen = append(seventeen, 0, 0, 0, 0)
	seventeen[19] = 17
	for name, c := range map[string]struct {
		body   []byte
		kind   error
		offset int
	}{
		"nothing":       {nil, ErrShort, 0},
		"name too long": {slices.Concat(good[:4], unhex(t, "00000100"), make([]byte, 256+12)), ErrLimit, 4},
		"name cut off":  {good[:15], ErrShort, 4},
		"17 gids":       {seventeen, ErrLimit, 16},
		"gids cut off":  {good[:len(good)-4], ErrShort, 24},
		"gids of 4 GiB": {slices.Concat(good[:24], unhex(t, "ffffffff")), ErrLimit, 24},
		"one word more": {slices.Concat(good, good[:4]), ErrTrailing, len(good)},
	} {
		t.Run(name, func(t *testing.T) {
			a := authSys()
			err := a.Parse(c.body)
			wantDecodeError(t, err, c.kind, c.offset)
			if !errors.Is(err, &RejectError{Stat: AuthError, Auth: AuthBadCred}) {
				t.Errorf("got %v, want AUTH_BADCRED", err)
			}
			if a.UID != 0 || a.GID != 0 || a.MachineName != "" || len(a.GIDs) != 0 {
				t.Errorf("%+v was left of the caller before", a)
			}
		})
	}
}
