package rdmap

import (
	"testing"
)

// The tables of RFC 5040 §4.1 (Figure 4) and RFC 7306 §4.1 (Figure 2).
var opcodeTable = []struct {
	op         Opcode
	octet      uint8 // RDMAP Control Field with RV 01b
	name       string
	tagged     bool
	queue      uint32
	invalidate bool
	solicited  bool
	extension  bool
}{
	{OpWrite, 0x40, "RDMA Write", true, 0, false, false, false},
	{OpReadRequest, 0x41, "RDMA Read Request", false, 1, false, false, false},
	{OpReadResponse, 0x42, "RDMA Read Response", true, 0, false, false, false},
	{OpSend, 0x43, "Send", false, 0, false, false, false},
	{OpSendInvalidate, 0x44, "Send with Invalidate", false, 0, true, false, false},
	{OpSendSE, 0x45, "Send with SE", false, 0, false, true, false},
	{OpSendSEInvalidate, 0x46, "Send with SE and Invalidate", false, 0, true, true, false},
	{OpTerminate, 0x47, "Terminate", false, 2, false, false, false},
	{OpImmediate, 0x48, "Immediate Data", false, 0, false, false, true},
	{OpImmediateSE, 0x49, "Immediate Data with SE", false, 0, false, true, true},
	{OpAtomicRequest, 0x4A, "Atomic Request", false, 1, false, false, true},
	{OpAtomicResponse, 0x4B, "Atomic Response", false, 3, false, false, true},
}

// Claims: R-4.1-2 R-4.1-5 R-4.1-6 R-4.1-7 R-4.1-9 R-4.1-11 R-4.1-14 R-4.1-15 R-4.1-16 R-4.1-17
// Claims: R-4.1-18 R-4.1-19 R-4.1-20 R-4.1-21
// Claims: X-4-4 X-4.1-1 X-4.1-4 X-4.1-5 X-4.1-6 X-4.1-7 X-5.1-2 X-5.2.1-13 X-5.2.1-18 X-6.3-1 X-6.3-4
// Claims: D-6.1-1 D-6.1-3
// Claims: X-5.2-3 X-10-1 R-2.4-3 R-3.1-2 R-3.1-3 R-3.1-4
func TestOpcodesHaveTheFactsOfTheTables(t *testing.T) {
	for _, row := range opcodeTable {
		op := row.op
		if !op.Defined() || op.String() != row.name || op.Tagged() != row.tagged || op.Queue() != row.queue ||
			op.Invalidates() != row.invalidate || op.Solicited() != row.solicited || op.Extension() != row.extension {
			t.Errorf("%s: defined %v, tagged %v, queue %d, invalidates %v, solicited %v, extension %v", op,
				op.Defined(), op.Tagged(), op.Queue(), op.Invalidates(), op.Solicited(), op.Extension())
		}
		if got := Control(VersionIETF, op); got != row.octet {
			t.Errorf("%s: control field %#02x, want %#02x", op, got, row.octet)
		}
		if got := Control(VersionConsortium, op); got != row.octet&0x3F {
			t.Errorf("%s: Consortium control field %#02x, want %#02x", op, got, row.octet&0x3F)
		}
	}
}

// Claims: R-4.1-22
func TestReservedOpcodesAreNotDefined(t *testing.T) {
	for op := Opcode(0xC); op != 0; op++ {
		if op.Defined() {
			t.Errorf("opcode %#x is defined as %s", uint8(op), op)
		}
	}
	if got, want := Opcode(0xC).String(), "reserved opcode 0xc"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
