// The codec of the start-up frames.

package mpa

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// The two keys (RFC 5044 §7.1.1).
const (
	reqHex = "4d504120 49442052 65712046 72616d65" // "MPA ID Req Frame"
	repHex = "4d504120 49442052 65702046 72616d65" // "MPA ID Rep Frame"
)

// unhex is the octets of hexadecimal text, blanks ignored.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// goldenFrames are frames and their octets.
var goldenFrames = []struct {
	name string
	f    Frame
	hex  string // after the key
}{
	// M, C, R and S are the bits 0x80 to 0x10 of the first octet, then come
	// Rev and PD_Length, then A and B with IRD, C and D with ORD.
	{"revision 1 Request with CRC", Frame{CRC: true, Revision: 1}, "40 01 0000"},
	{"revision 1 Request with Markers, CRC and data", Frame{Markers: true, CRC: true, Revision: 1, PrivateData: []byte("hi")}, "c0 01 0002 6869"},
	{"revision 1 Request with nothing", Frame{Revision: 1}, "00 01 0000"},
	{"revision 1 accepting Reply", Frame{Kind: ReplyFrame, CRC: true, Revision: 1}, "40 01 0000"},
	{"revision 1 rejecting Reply with data", Frame{Kind: ReplyFrame, CRC: true, Reject: true, Revision: 1, PrivateData: []byte("no")}, "60 01 0002 6e6f"},
	{"RDMA Consortium Request", Frame{Markers: true, CRC: true}, "c0 00 0000"},
	{"peer-to-peer Request, Write or Read", Frame{CRC: true, Revision: 2, Enhanced: true, PeerToPeer: true, RTR: RTRWrite | RTRRead, IRD: 16, ORD: 16}, "50 02 0004 8010 c010"},
	{"peer-to-peer Request, any RTR, with data", Frame{CRC: true, Revision: 2, Enhanced: true, PeerToPeer: true, RTR: RTRAny, IRD: 5, ORD: 3, PrivateData: []byte("abc")}, "50 02 0007 c005 c003 616263"},
	{"peer-to-peer Request, Write", Frame{CRC: true, Revision: 2, Enhanced: true, PeerToPeer: true, RTR: RTRWrite, IRD: 5, ORD: 3}, "50 02 0004 8005 8003"},
	{"peer-to-peer Reply, Write", Frame{Kind: ReplyFrame, CRC: true, Revision: 2, Enhanced: true, PeerToPeer: true, RTR: RTRWrite, IRD: 16, ORD: 5}, "50 02 0004 8010 8005"},
	{"client-server Request", Frame{CRC: true, Revision: 2, Enhanced: true, IRD: 4, ORD: 4}, "50 02 0004 0004 0004"},
	{"Request without CRC", Frame{Revision: 2, Enhanced: true}, "10 02 0004 0000 0000"},
	{"Request with Markers", Frame{Markers: true, CRC: true, Revision: 2, Enhanced: true}, "d0 02 0004 0000 0000"},
	{"Request that negotiates neither IRD nor ORD", Frame{CRC: true, Revision: 2, Enhanced: true, IRD: NotNegotiated, ORD: NotNegotiated}, "50 02 0004 3fff 3fff"},
	{"Request with the largest IRD and ORD", Frame{CRC: true, Revision: 2, Enhanced: true, IRD: 0x3FFE, ORD: 1}, "50 02 0004 3ffe 0001"},
	{"peer-to-peer Request, Send, with the largest ORD", Frame{CRC: true, Revision: 2, Enhanced: true, PeerToPeer: true, RTR: RTRSend, IRD: 0, ORD: 0x3FFE}, "50 02 0004 c000 3ffe"},
	{"rejecting Reply that needs ORD 8", Frame{Kind: ReplyFrame, CRC: true, Reject: true, Revision: 2, Enhanced: true, PeerToPeer: true, RTR: RTRWrite | RTRRead, IRD: 1, ORD: 8}, "70 02 0004 8001 c008"},
	{"unenhanced revision 2 Request with data", Frame{CRC: true, Revision: 2, PrivateData: []byte{0xC0, 5, 0xC0, 3}}, "40 02 0004 c005c003"},
}

func keyHex(k FrameKind) string {
	if k == ReplyFrame {
		return repHex
	}
	return reqHex
}

// Claims: MPA-7.1.1-1 MPA-7.1.1-8 MPA-7.1.1-10 MPA-7.1.1-13 MPA-7.1.1-7
// Claims: ME-6-1 ME-6-2 ME-6-3 ME-6-5 ME-6-8 ME-9-1 ME-9-3 ME-10-6 ME-1.1-2
func TestFramesAreTheOctetsOfTheSpecification(t *testing.T) {
	for _, g := range goldenFrames {
		t.Run(g.name, func(t *testing.T) {
			want := unhex(t, keyHex(g.f.Kind)+g.hex)
			got, err := AppendFrame([]byte("before"), g.f)
			if err != nil {
				t.Fatal(err)
			}
			if got = bytes.TrimPrefix(got, []byte("before")); !bytes.Equal(got, want) {
				t.Errorf("appended %x\n    want %x", got, want)
			}
			f := g.f
			if !f.Enhanced {
				f.IRD, f.ORD = NotNegotiated, NotNegotiated
			}
			parsed, n, err := ParseFrame(append(want, "behind"...), g.f.Kind)
			if err != nil || n != len(want) || !reflect.DeepEqual(parsed, f) {
				t.Errorf("parsed %+v, %d, %v\n  want %+v, %d", parsed, n, err, f, len(want))
			}
		})
	}
}

// Claims: ME-9.2-12 ME-9.2-13
func TestFlagsBCAndDMeanNothingWithoutA(t *testing.T) {
	b, err := AppendFrame(nil, Frame{Revision: 2, Enhanced: true, RTR: RTRAny, IRD: 1, ORD: 2})
	if err != nil || !bytes.Equal(b[frameHeader:], []byte{0, 1, 0, 2}) {
		t.Errorf("sent as % x, %v", b[frameHeader:], err)
	}
	f, _, err := ParseFrame(unhex(t, reqHex+"10 02 0004 4001 c002"), RequestFrame)
	if err != nil || f.PeerToPeer || f.RTR != 0 || f.IRD != 1 || f.ORD != 2 {
		t.Errorf("received as %+v, %v", f, err)
	}
}

// Below revision 2 the S bit is one of the reserved ones; Linux siw keeps it
// in a Reply of revision 1, and has a use of its own for 0x08.
//
// Claims: MPA-7.1.1-9 ME-6-4
func TestReservedBitsAreNotChecked(t *testing.T) {
	for _, c := range []struct {
		hex  string
		want Frame
	}{
		{"5f 01 0002 6869", Frame{Kind: ReplyFrame, CRC: true, Revision: 1, IRD: NotNegotiated, ORD: NotNegotiated, PrivateData: []byte("hi")}},
		{"5f 01 0000", Frame{Kind: ReplyFrame, CRC: true, Revision: 1, IRD: NotNegotiated, ORD: NotNegotiated}},
		{"1f 02 0004 0001 0002", Frame{Kind: ReplyFrame, Revision: 2, Enhanced: true, IRD: 1, ORD: 2}},
		{"df 00 0000", Frame{Kind: ReplyFrame, Markers: true, CRC: true, IRD: NotNegotiated, ORD: NotNegotiated}},
	} {
		f, _, err := ParseFrame(unhex(t, repHex+c.hex), ReplyFrame)
		if err != nil || !reflect.DeepEqual(f, c.want) {
			t.Errorf("%s: %+v, %v", c.hex, f, err)
		}
	}
}

// Claims: MPA-7.1.1-7
func TestTheRejectedBitOfARequestIsNotChecked(t *testing.T) {
	f, _, err := ParseFrame(unhex(t, reqHex+"60 01 0000"), RequestFrame)
	if err != nil || f.Reject {
		t.Errorf("%+v, %v", f, err)
	}
}

// malformed are frames of kind k that no side may accept.
func malformed(t testing.TB, k FrameKind) map[string][]byte {
	good := unhex(t, keyHex(k)+"40 01 0002 6869")
	m := map[string][]byte{
		"the other key":                  unhex(t, keyHex(RequestFrame+ReplyFrame-k)+"40 01 0000"),
		"PD_Length 513":                  append(unhex(t, keyHex(k)+"40 01 0201"), make([]byte, 513)...),
		"PD_Length 65535":                append(unhex(t, keyHex(k)+"40 01 ffff"), make([]byte, 65535)...),
		"enhanced with PD_Length 3":      unhex(t, keyHex(k)+"50 02 0003 000000"),
		"enhanced without private data":  unhex(t, keyHex(k)+"50 02 0000"),
		"revision 3":                     unhex(t, keyHex(k)+"40 03 0000"),
		"revision 255":                   unhex(t, keyHex(k)+"40 ff 0000"),
		"revision 255, rejecting":        unhex(t, keyHex(k)+"60 ff 0000"),
		"something else than MPA at all": []byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n"),
	}
	for i := range keyLen {
		b := bytes.Clone(good)
		b[i] ^= 1
		m[fmt.Sprintf("octet %d of the key changed", i)] = b
	}
	return m
}

// Claims: MPA-7.1.1-14 ME-6-9 ME-12-1
func TestMalformedFramesAreRefused(t *testing.T) {
	for _, k := range []FrameKind{RequestFrame, ReplyFrame} {
		for name, b := range malformed(t, k) {
			if f, _, err := ParseFrame(b, k); !isStartup(err) {
				t.Errorf("%v with %s: parsed as %+v, %v", k, name, f, err)
			}
		}
		whole := unhex(t, keyHex(k)+"50 02 0007 c005 c003 616263")
		for n := range whole {
			if _, _, err := ParseFrame(whole[:n], k); !isStartup(err) {
				t.Errorf("the first %d octets of a %v: %v", n, k, err)
			}
		}
	}
}

// isStartup reports whether err is an *Error with CodeStartup.
func isStartup(err error) bool { return hasCode(err, CodeStartup) }

func hasCode(err error, c Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == c
}

// Claims: MPA-7.1.1-15 ME-9-2 ME-7-2
func TestPrivateDataBeyondTheLimitIsNotSent(t *testing.T) {
	for _, c := range []struct {
		enhanced bool
		n        int
		ok       bool
	}{{false, 511, true}, {false, 512, true}, {false, 513, false}, {true, 508, true}, {true, 509, false}, {true, 512, false}} {
		b, err := AppendFrame(nil, Frame{Revision: 2, Enhanced: c.enhanced, PrivateData: make([]byte, c.n)})
		if ok := err == nil; ok != c.ok {
			t.Errorf("enhanced %t, %d octets: %v", c.enhanced, c.n, err)
		}
		if err != nil && (len(b) != 0 || !errors.Is(err, ErrPrivateData)) {
			t.Errorf("enhanced %t, %d octets: appended %d octets, %v", c.enhanced, c.n, len(b), err)
		}
		if err == nil {
			if f, _, err := ParseFrame(b, RequestFrame); err != nil || len(f.PrivateData) != c.n {
				t.Errorf("enhanced %t, %d octets: came back as %d, %v", c.enhanced, c.n, len(f.PrivateData), err)
			}
		}
	}
}

// Claims: MPA-7.1.2-18
func TestReadingAFrameTakesItsOctetsAndNoMore(t *testing.T) {
	chunked := map[string]func(io.Reader) io.Reader{
		"at once":        func(r io.Reader) io.Reader { return r },
		"octet by octet": iotest.OneByteReader,
		"in halves":      iotest.HalfReader,
		"end with data":  iotest.DataErrReader,
	}
	for name, chunk := range chunked {
		for _, g := range goldenFrames {
			frame := unhex(t, keyHex(g.f.Kind)+g.hex)
			r := bytes.NewReader(append(bytes.Clone(frame), "FPDU"...))
			f, n, err := readFrame(chunk(r), g.f.Kind)
			if err != nil || n != len(frame) {
				t.Errorf("%s, %s: %d, %v", g.name, name, n, err)
			}
			if !bytes.Equal(f.PrivateData, g.f.PrivateData) {
				t.Errorf("%s, %s: private data %q", g.name, name, f.PrivateData)
			}
			// iotest's DataErrReader reads ahead by itself.
			if rest := r.Len(); name != "end with data" && rest != len("FPDU") {
				t.Errorf("%s, %s: %d octets left of 4", g.name, name, rest)
			}
		}
	}
}

func TestAWrongKeyIsRefusedAtItsFirstWrongOctet(t *testing.T) {
	for i := range keyLen {
		b := []byte(replyKey)
		b[i] ^= 0x80
		r := bytes.NewReader(b)
		if _, n, err := readFrame(iotest.OneByteReader(r), ReplyFrame); !isStartup(err) || n != i+1 {
			t.Errorf("octet %d wrong: %d octets read, %v", i, n, err)
		}
	}
}

func TestACutFrameIsAnUnexpectedEnd(t *testing.T) {
	whole := unhex(t, repHex+"50 02 0007 c005 c003 616263")
	for n := range whole {
		want := io.ErrUnexpectedEOF
		if n == 0 {
			want = io.EOF
		}
		if _, m, err := readFrame(bytes.NewReader(whole[:n]), ReplyFrame); err != want || m != n {
			t.Errorf("after %d octets: %d, %v", n, m, err)
		}
	}
}

func TestTheFrameCodecAllocatesNothing(t *testing.T) {
	f := goldenFrames[7].f
	b, _ := AppendFrame(nil, f)
	buf := make([]byte, 0, maxFrame)
	if n := testing.AllocsPerRun(100, func() {
		AppendFrame(buf, f)
		ParseFrame(b, RequestFrame)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParseFrame(f *testing.F) {
	for _, g := range goldenFrames {
		f.Add(unhex(f, keyHex(g.f.Kind)+g.hex), g.f.Kind == ReplyFrame)
	}
	for _, b := range malformed(f, RequestFrame) {
		f.Add(b, false)
	}
	f.Fuzz(func(t *testing.T, b []byte, reply bool) {
		kind := RequestFrame
		if reply {
			kind = ReplyFrame
		}
		frame, n, err := ParseFrame(b, kind)
		read, m, rerr := readFrame(bytes.NewReader(b), kind)
		if (err == nil) != (rerr == nil) || err == nil && (n != m || !reflect.DeepEqual(frame, read)) {
			t.Fatalf("parsed as %+v, %d, %v\n  read as %+v, %d, %v", frame, n, err, read, m, rerr)
		}
		if err != nil {
			if !isStartup(err) {
				t.Fatalf("error %v has not CodeStartup", err)
			}
			return
		}
		again, err := AppendFrame(nil, frame)
		if err != nil {
			t.Fatal(err)
		}
		back, k, err := ParseFrame(again, kind)
		if err != nil || k != n || !reflect.DeepEqual(back, frame) {
			t.Fatalf("came back as %+v, %d, %v\n      was %+v, %d", back, k, err, frame, n)
		}
	})
}
