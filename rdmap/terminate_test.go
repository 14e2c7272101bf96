package rdmap

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// Segments at fault, as a Terminate reports them.
var (
	writeHeader   = ddp.Tagged{Last: true, Version: 1, RsvdULP: Control(1, OpWrite), STag: 0x1234, TO: 0x1000}
	sendHeader    = ddp.Untagged{Last: true, Version: 1, RsvdULP: ControlUntagged(1, OpSend, 0), MSN: 5}
	requestHeader = ddp.Untagged{Last: true, Version: 1, RsvdULP: ControlUntagged(1, OpReadRequest, 0), QN: 1, MSN: 1}
	atomicHeader  = ddp.Untagged{Last: true, Version: 1, RsvdULP: ControlUntagged(1, OpAtomicRequest, 0), QN: 1, MSN: 1}
	readRequest   = ReadRequest{SinkSTag: 0x11223344, SinkTO: 0x1000, Size: 4096, SourceSTag: 0x55667788, SourceTO: 0x20}
)

const (
	writeWire   = "c140 00001234 0000000000001000"
	sendWire    = "4143 00000000 00000000 00000005 00000000"
	requestWire = "4141 00000000 00000001 00000001 00000000"
	atomicWire  = "414a 00000000 00000001 00000001 00000000"
	readWire    = "11223344 0000000000001000 00001000 55667788 0000000000000020"
)

// What goes with which error is Figure 10's, and R's for a Read Request only.
//
// Claims: R-4.8-1 R-4.8-2 R-4.8-4 R-4.8-5 R-4.8-6 R-4.8-7 R-4.8-8 R-4.8-9 R-4.8-24 R-4.8-25 R-4.8-26 R-4.8-27
// Claims: R-4.8-28 R-4.8-29 R-4.8-30 R-4.8-31 R-4.8-32 R-4.8-33 R-4.8-34
// Claims: R-4.8-38 R-4.8-39 R-4.8-40 R-4.8-41 R-4.8-42 D-6.8-1 D-6.8-2 X-8.1-1 X-8.1-2
func TestTerminateReportsWhatFigure10Says(t *testing.T) {
	for _, c := range []struct {
		name               string
		layer, etype, code uint8
		header             []byte
		length             int
		read               *ReadRequest
		wire               string
	}{
		{"local catastrophic", LayerRDMA, LocalCatastrophic, 0, sendHeader.Append(nil), 23, nil, "00000000"},
		{"no incoming segment", LayerRDMA, RemoteOperation, CodeStream, nil, 0, nil, "02070000"},
		{"protection, Read Request", LayerRDMA, RemoteProtection, CodeInvalidSTag, requestHeader.Append(nil), 46, &readRequest, "0100e000 002e" + requestWire + readWire},
		{"protection, atomic", LayerRDMA, RemoteProtection, CodeBounds, atomicHeader.Append(nil), 70, nil, "0101c000 0046" + atomicWire},
		{"protection, Send with Invalidate", LayerRDMA, RemoteProtection, CodeCannotInvalidate, sendHeader.Append(nil), 23, nil, "0109c000 0017" + sendWire},
		{"operation, Read Request", LayerRDMA, RemoteOperation, CodeUnspecified, requestHeader.Append(nil), 45, &readRequest, "02ffc000 002d" + requestWire},
		{"operation, misaligned atomic", LayerRDMA, RemoteOperation, CodeStream, atomicHeader.Append(nil), 70, nil, "0207c000 0046" + atomicWire},
		{"operation, Write", LayerRDMA, RemoteOperation, CodeVersion, writeHeader.Append(nil), 18, nil, "0205c000 0012" + writeWire},
		{"a Read Request that is none", LayerRDMA, RemoteProtection, CodeInvalidSTag, sendHeader.Append(nil), 46, &readRequest, "0100c000 002e" + sendWire},
		{"DDP, tagged", LayerDDP, ddp.TaggedBuffer, ddp.CodeBounds, writeHeader.Append(nil), 65535, nil, "1101c000 ffff" + writeWire},
		{"DDP, untagged", LayerDDP, ddp.UntaggedBuffer, ddp.CodeNoBuffer, requestHeader.Append(nil), 46, &readRequest, "1202c000 002e" + requestWire},
		{"DDP, no whole header", LayerDDP, ddp.LocalCatastrophic, 0, nil, 3, nil, "10000000"},
		{"MPA", LayerLLP, 0, 2, sendHeader.Append(nil), 23, nil, "20020000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := unhex(t, c.wire)
			sent := NewTerminate(c.layer, c.etype, c.code, c.header, c.length, c.read)
			if got := sent.Append(nil); !bytes.Equal(got, want) || len(got) > MaxTerminateLen {
				t.Errorf("Append: % x\nwant % x", got, want)
			}
			var got Terminate
			if !got.Parse(want) || !reflect.DeepEqual(got, sent) {
				t.Errorf("Parse: %+v, want %+v", got, sent)
			}
			for _, reserved := range [][2]byte{{0x1F, 0}, {0, 0xFF}, {0x1F, 0xFF}} {
				wire := bytes.Clone(want)
				wire[2] |= reserved[0]
				wire[3] |= reserved[1]
				if !got.Parse(wire) || !reflect.DeepEqual(got, sent) {
					t.Errorf("Parse with reserved bits % x: %+v, want %+v", reserved, got, sent)
				}
			}
		})
	}
}

// Whatever is asked for, only what the tables define is sent.
//
// Claims: R-4.8-3
func TestOnlyDefinedCodesAreSent(t *testing.T) {
	for first := range 256 {
		for code := range 256 {
			layer, etype := uint8(first>>4), uint8(first&0xF)
			sent := NewTerminate(layer, etype, uint8(code), nil, 0, nil)
			wire := sent.Append(nil)
			if !Defined(wire[0]>>4, wire[0]&0xF, wire[1]) {
				t.Fatalf("%d/%d/%02x was sent", wire[0]>>4, wire[0]&0xF, wire[1])
			}
			if Defined(layer, etype, uint8(code)) && (wire[0] != byte(first) || wire[1] != byte(code)) {
				t.Fatalf("%d/%d/%02x was sent as %02x%02x", layer, etype, code, wire[0], wire[1])
			}
		}
	}
	if got := NewTerminate(LayerRDMA, RemoteProtection, 0x33, nil, 0, nil); got.EType != RemoteProtection || got.Code != CodeUnspecified {
		t.Errorf("an unknown protection error became %d/%d/%02x", got.Layer, got.EType, got.Code)
	}
}

// What a peer leaves out, cuts short or fills with zeros costs no more than
// that part.
func TestTerminateIsParsedLiberally(t *testing.T) {
	zeros := "00000000 00000000 00000000 00000000 00000000 00000000"
	for _, c := range []struct {
		name string
		wire string
		want Terminate
	}{
		{"absent parts as zeros", "02060000 0000" + zeros + zeros, Terminate{EType: 2, Code: 6}},
		{"octets nobody announced", "11018000 002e ffff", Terminate{Layer: 1, EType: 1, Code: 1, M: true, SegmentLength: 46}},
		{"length there but not valid", "11014000 002e" + writeWire, Terminate{Layer: 1, EType: 1, Code: 1, DDPHeader: writeHeader.Append(nil)}},
		{"Read Request alone", "01002000" + readWire, Terminate{EType: 1, R: true, ReadRequest: readRequest}},
		{"Read Request behind zeros", "01002000 0000 00000000 00000000 00000000 00000000 0000" + readWire, Terminate{EType: 1, R: true, ReadRequest: readRequest}},
		{"no length", "1101c000", Terminate{Layer: 1, EType: 1, Code: 1, Truncated: true}},
		{"half a length", "1101c000 00", Terminate{Layer: 1, EType: 1, Code: 1, Truncated: true}},
		{"no DDP header", "1101c000 002e", Terminate{Layer: 1, EType: 1, Code: 1, M: true, SegmentLength: 46, Truncated: true}},
		{"half a DDP header", "1101c000 002e c140 0000", Terminate{Layer: 1, EType: 1, Code: 1, M: true, SegmentLength: 46, Truncated: true}},
		{"no Read Request", "0100e000 002e" + requestWire, Terminate{EType: 1, M: true, SegmentLength: 46, DDPHeader: requestHeader.Append(nil), Truncated: true}},
		{"half a Read Request", "0100e000 002e" + requestWire + "11223344", Terminate{EType: 1, M: true, SegmentLength: 46, DDPHeader: requestHeader.Append(nil), Truncated: true}},
		{"undefined numbers", "f3330000", Terminate{Layer: 15, EType: 3, Code: 0x33}},
		{"local catastrophic, any code", "00a50000", Terminate{Code: 0xA5}},
		{"start-up frame, which siw sends", "20040000", Terminate{Layer: 2, Code: 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got Terminate
			if !got.Parse(unhex(t, c.wire)) || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func TestTerminateWithoutAControlFieldSaysNothing(t *testing.T) {
	for n := range terminateControlLen {
		got := Terminate{Layer: 1}
		if got.Parse(make([]byte, n)) || !reflect.DeepEqual(got, Terminate{}) {
			t.Errorf("%d octets: %+v", n, got)
		}
	}
}

// Linux's siw on little-endian hosts writes type before layer, and M, D, R from
// the low end. That reading is taken only where the RFC's makes no sense.
func TestTerminateInSiwsBitOrderIsRecognised(t *testing.T) {
	for _, c := range []struct {
		name string
		wire string
		want Terminate
	}{
		{
			"insufficient IRD, with M and D", "02060300 000e" + sendWire,
			Terminate{Layer: 2, Code: 6, M: true, SegmentLength: 14, DDPHeader: sendHeader.Append(nil), Swapped: true},
		},
		{"what reads as unexpected opcode, without headers", "02060300", Terminate{EType: 2, Code: 6}},
		{
			"Read of an unknown STag, as siw 6.1 sends it", "10000700 0000" + requestWire + readWire,
			Terminate{EType: 1, M: true, DDPHeader: requestHeader.Append(nil), R: true, ReadRequest: readRequest, Swapped: true},
		},
		{"CRC mismatch", "02020000", Terminate{Layer: 2, Code: 2, Swapped: true}},
		{
			"untagged, MO, with M and D", "21040300 0017" + sendWire,
			Terminate{Layer: 1, EType: 2, Code: 4, M: true, SegmentLength: 23, DDPHeader: sendHeader.Append(nil), Swapped: true},
		},
		{
			"protection, with M, D and R", "10010700 002e" + requestWire + readWire,
			Terminate{EType: 1, Code: 1, M: true, SegmentLength: 46, DDPHeader: requestHeader.Append(nil), R: true, ReadRequest: readRequest, Swapped: true},
		},
		{"defined in neither order", "33330300", Terminate{Layer: 3, EType: 3, Code: 0x33}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got Terminate
			if !got.Parse(unhex(t, c.wire)) || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

func FuzzTerminate(f *testing.F) {
	for _, s := range []string{"", "00", "02060000", "0100e000 002e" + requestWire + readWire, "1101c000 0012" + writeWire, "11014000 0012" + writeWire, "10010700 002e" + requestWire, "01002000" + readWire} {
		f.Add(unhex(f, s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e := NewTerminateError(b)
		if e.Error() == "" || !bytes.Equal(e.Raw, b) || !e.Remote {
			t.Fatalf("%+v", e)
		}
		var first, again Terminate
		if first.Parse(b) != (len(b) >= terminateControlLen) {
			t.Fatalf("%d octets parse as %+v", len(b), first)
		}
		if len(b) < terminateControlLen {
			return
		}
		wire := first.Append(nil)
		if len(wire) > MaxTerminateLen {
			t.Fatalf("%d octets", len(wire))
		}
		if n := len(first.DDPHeader); n != 0 && n != ddp.HeaderLen(first.DDPHeader) {
			t.Fatalf("DDP header of %d octets", n)
		}
		first.Swapped, first.Truncated = false, false
		if !first.M {
			first.SegmentLength = 0
		}
		if !again.Parse(wire) || !reflect.DeepEqual(first, again) {
			t.Fatalf("%+v came back as %+v", first, again)
		}
	})
}
