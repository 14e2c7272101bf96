package rdmap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// The tables of RFC 5040 §4.8 (Figure 9), RFC 5041 §7.2, RFC 5044 §8 and
// RFC 6581 §8.
var codeTable = map[[3]uint8]string{
	{0, 1, 0x00}: "RDMA remote protection error: invalid STag: no memory has it, or not any more (0/1/00)",
	{0, 1, 0x01}: "RDMA remote protection error: base or bounds violation: the region or window does not have all of the octets (0/1/01)",
	{0, 1, 0x02}: "RDMA remote protection error: no access: the region lacks Remote Read, or Remote Atomic of an atomic, or its queue pair does not enable them (0/1/02)",
	{0, 1, 0x03}: "RDMA remote protection error: STag not associated with RDMAP stream: it is of another domain or stream (0/1/03)",
	{0, 1, 0x04}: "RDMA remote protection error: TO wrap: offset and length exceed 2^64 (0/1/04)",
	{0, 1, 0x09}: "RDMA remote protection error: STag cannot be invalidated: it is of another domain or stream, is Shared, or has windows bound (0/1/09)",
	{0, 1, 0xFF}: "RDMA remote protection error: unspecified error (0/1/FF)",
	{0, 2, 0x05}: "RDMA remote operation error: invalid RDMAP version (0/2/05)",
	{0, 2, 0x06}: "RDMA remote operation error: unexpected opcode: the receiver does not know the message, or not there (0/2/06)",
	{0, 2, 0x07}: "RDMA remote operation error: catastrophic error, localized to RDMAP stream (0/2/07)",
	{0, 2, 0x08}: "RDMA remote operation error: catastrophic error, global (0/2/08)",
	{0, 2, 0x09}: "RDMA remote operation error: STag cannot be invalidated: it is of another domain or stream, is Shared, or has windows bound (0/2/09)",
	{0, 2, 0xFF}: "RDMA remote operation error: unspecified error (0/2/FF)",
	{1, 0, 0x00}: "DDP local catastrophic error (1/0/00)",
	{1, 1, 0x00}: "DDP tagged buffer error: invalid STag: no memory has it, or not any more (1/1/00)",
	{1, 1, 0x01}: "DDP tagged buffer error: base or bounds violation: the region or window does not have all of the octets (1/1/01)",
	{1, 1, 0x02}: "DDP tagged buffer error: no access: the region lacks Remote Write, its queue pair does not enable writes, or it is of another domain or stream (1/1/02)",
	{1, 1, 0x03}: "DDP tagged buffer error: TO wrap: offset and length exceed 2^64 (1/1/03)",
	{1, 1, 0x04}: "DDP tagged buffer error: invalid DDP version (1/1/04)",
	{1, 2, 0x01}: "DDP untagged buffer error: invalid QN: there is no such queue, or its queue pair does not enable RDMA Reads (1/2/01)",
	{1, 2, 0x02}: "DDP untagged buffer error: invalid MSN, no buffer available: no receive was posted (1/2/02)",
	{1, 2, 0x03}: "DDP untagged buffer error: invalid MSN, MSN range is not valid: a message is missing, or more RDMA Reads and atomics are outstanding than its IRD (1/2/03)",
	{1, 2, 0x04}: "DDP untagged buffer error: invalid MO (1/2/04)",
	{1, 2, 0x05}: "DDP untagged buffer error: message too long for available buffer: the receive that was posted is shorter (1/2/05)",
	{1, 2, 0x06}: "DDP untagged buffer error: invalid DDP version (1/2/06)",
	{2, 0, 0x01}: "MPA error: TCP connection closed, terminated or lost (2/0/01)",
	{2, 0, 0x02}: "MPA error: CRC mismatch (2/0/02)",
	{2, 0, 0x03}: "MPA error: marker and ULPDU length mismatch (2/0/03)",
	{2, 0, 0x04}: "MPA error: invalid MPA request or reply frame (2/0/04)",
	{2, 0, 0x05}: "MPA error: local catastrophic error (2/0/05)",
	{2, 0, 0x06}: "MPA error: insufficient IRD resources (2/0/06)",
	{2, 0, 0x07}: "MPA error: no matching RTR option (2/0/07)",
}

// Claims: R-4.8-3 R-4.8-4 R-4.8-10 R-4.8-11 R-4.8-12 R-4.8-13 R-4.8-14 R-4.8-15 R-4.8-16 R-4.8-17
// Claims: R-4.8-18 R-4.8-19 R-4.8-20 R-4.8-21 R-4.8-22 R-4.8-23 DDP-7.2-14 D-6.8-3 D-6.8-4 D-6.8-5
func TestEveryDefinedCodeHasItsWords(t *testing.T) {
	for layer := range uint8(16) {
		for etype := range uint8(16) {
			for code := range 256 {
				code := uint8(code)
				want, defined := codeTable[[3]uint8{layer, etype, code}]
				if layer == LayerRDMA && etype == LocalCatastrophic { // any code will do
					want, defined = fmt.Sprintf("RDMA local catastrophic error (0/0/%02X)", code), true
				}
				if got := Defined(layer, etype, code); got != defined {
					t.Errorf("%d/%d/%02X: defined %v, want %v", layer, etype, code, got, defined)
				}
				if got := Describe(layer, etype, code); defined && got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			}
		}
	}
	for _, c := range []struct {
		layer, etype, code uint8
		want               string
	}{
		{0, 2, 0x33, "RDMA remote operation error: undefined code (0/2/33)"},
		{1, 3, 0x00, "undefined error (1/3/00)"},
		{15, 15, 0xFF, "undefined error (15/15/FF)"},
	} {
		if got := Describe(c.layer, c.etype, c.code); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestTerminateErrorSaysWhoTerminatedAndWhy(t *testing.T) {
	for _, c := range []struct {
		err  *TerminateError
		want string
	}{
		{NewTerminateError(unhex(t, "1101c000 0012"+writeWire)), "the peer terminated the stream: DDP tagged buffer error: base or bounds violation: the region or window does not have all of the octets (1/1/01), about RDMA Write at offset 0x1000 of STag 0x00001234"},
		{NewTerminateError(unhex(t, "02020300")), "the peer terminated the stream: MPA error: CRC mismatch (2/0/02), received in swapped bit order as 02 02 03 00"},
		{NewTerminateError(unhex(t, "11020000")), "the peer terminated the stream: DDP tagged buffer error: no access: the region lacks Remote Write, " +
			"its queue pair does not enable writes, or it is of another domain or stream (1/1/02)"},
		{NewTerminateError(unhex(t, "0100e000 002e"+requestWire+readWire)), "the peer terminated the stream: RDMA remote protection error: invalid STag: " +
			"no memory has it, or not any more (0/1/00), about the RDMA Read of 4096 octets at offset 0x20 of STag 0x55667788"},
		{NewTerminateError(unhex(t, "0207c000 0046 41 4a 00000000 00000001 00000003 00000000")), "the peer terminated the stream: RDMA remote operation error: " +
			"catastrophic error, localized to RDMAP stream (0/2/07), about Atomic Request, message 3 on queue 1: the target of an atomic has to lie at a multiple of 8 in memory"},
		{NewTerminateError([]byte{1, 2}), "the peer terminated the stream without saying why: 2 octets, expected at least 4"},
		{&TerminateError{Layer: LayerRDMA, EType: RemoteOperation, Code: CodeVersion, Err: NewError(RemoteOperation, CodeVersion, "0")},
			"this side terminated the stream: rdmap: RDMA remote operation error: invalid RDMAP version (0/2/05): 0"},
		{&TerminateError{Layer: LayerRDMA, EType: RemoteOperation, Code: CodeOpcode}, "this side terminated the stream: RDMA remote operation error: unexpected opcode: the receiver does not know the message, or not there (0/2/06)"},
		{
			&TerminateError{Layer: LayerLLP, Code: 1, Err: io.ErrUnexpectedEOF},
			"this side terminated the stream: unexpected EOF (2/0/01)",
		},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestTerminateErrorKeepsAllThatThePeerTold(t *testing.T) {
	raw := unhex(t, "0100e000 002e"+requestWire+readWire)
	want := &TerminateError{
		EType: RemoteProtection, Code: CodeInvalidSTag, Remote: true, SegmentLength: 46,
		DDPHeader: requestHeader.Append(nil), ReadRequest: &readRequest, Raw: bytes.Clone(raw),
	}
	got := NewTerminateError(raw)
	clear(raw) // the message's buffer is used again
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if layer, etype, code := got.TerminateCode(); layer != 0 || etype != 1 || code != 0 {
		t.Errorf("code %d/%d/%02x", layer, etype, code)
	}
	if got := NewTerminateError(nil); got.EType != RemoteOperation || got.Code != CodeUnspecified || !got.Remote {
		t.Errorf("an empty message became %+v", got)
	}
}

func TestErrorsAreToldApartByTheirCode(t *testing.T) {
	remote := fmt.Errorf("dialing: %w", NewTerminateError(unhex(t, "02060000")))
	if !errors.Is(remote, &TerminateError{EType: RemoteOperation, Code: CodeOpcode}) {
		t.Error("a TerminateError is not what its code says")
	}
	for _, other := range []*TerminateError{{EType: RemoteOperation, Code: CodeVersion}, {EType: RemoteProtection, Code: CodeOpcode}, {Layer: 2, EType: 2, Code: 6}} {
		if errors.Is(remote, other) {
			t.Errorf("%v is %v", remote, other)
		}
	}
	cause := NewProtectionError(ddp.FaultAccess, "Read Request for %d octets of STag %#x", 8, 0x1234)
	local := &TerminateError{EType: RemoteProtection, Code: CodeAccess, Err: cause}
	var e *Error
	if !errors.As(local, &e) || e != cause || !errors.Is(local, &Error{EType: RemoteProtection, Code: CodeAccess}) {
		t.Error("a local TerminateError hides its cause")
	}
	if errors.Is(cause, &Error{EType: RemoteProtection, Code: CodeBounds}) || errors.Is(cause, io.EOF) {
		t.Error("an Error is another one")
	}
	if got, want := cause.Error(), "rdmap: RDMA remote protection error: no access (0/1/02): Read Request for 8 octets of STag 0x1234"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Claims: R-4.8-11 R-4.8-12 R-4.8-13 R-4.8-14 R-4.8-15
func TestEveryFaultHasItsRemoteProtectionCode(t *testing.T) {
	for fault, code := range map[ddp.Fault]uint8{
		ddp.FaultSTag:        CodeInvalidSTag,
		ddp.FaultBounds:      CodeBounds,
		ddp.FaultAccess:      CodeAccess,
		ddp.FaultAssociation: CodeNotAssociated,
		ddp.FaultWrap:        CodeWrap,
		ddp.NoFault:          CodeUnspecified,
	} {
		e := NewProtectionError(fault, "x")
		if e.Fault != fault {
			t.Errorf("%v became %v", fault, e.Fault)
		}
		wantError(t, e, RemoteProtection, code)
	}
}
