package wiretest

import (
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// What is wrong with an untagged segment's header ends the stream with the code
// that says so, before anything is placed. Opcode, version and queue come
// before MSN and MO.
//
// Claims: R-7.2-1 R-7.2-2 R-7.2-3 R-7.1-3 R-7.1-1 R-5.4-8 R-7-2 R-7-4 R-5.4-1 R-5.4-2 R-5.4-3
// Claims: X-8.2-1 X-8.2-2 X-8.2-3 X-6.3-7 X-8.1-2 R-4.8-26 R-4.8-28 R-4.8-29 R-4.8-31
// Claims: DDP-7.1-1 DDP-7.1-2 DDP-7.1-3 DDP-7.1-4 DDP-7.1-5 DDP-7.1-16 DDP-7.1-17 DDP-7.1-19 DDP-7.2-1 DDP-6.2-1 DDP-6.2.2-4 DDP-6.2.2-1
// Claims: DDP-6.2.2-3 DDP-7.1-20 R-6.2.1-1 R-6.2.1-5
// Claims: R-5.5-12 R-5.5-20
// Claims: R-5.3-7 V-9.5.3-9 V-9.5.3-10 V-9.5.3-11 V-9.5.3-12
// Claims: V-9.5.3-15 V-9.5.3-16 V-9.5.3-27 V-9.5.3-28 V-8.3.3-6 V-8.3.3-10
// Claims: R-3.1-10 R-7-1 X-3-3 X-6.1-3 X-10-1 X-10.2-1
func TestUntaggedSegmentsThatBreakARuleAreRefused(t *testing.T) {
	bad := func(name string, u []byte, layer, etype, code byte, event verbs.EventID) offence {
		return offence{name: name, send: one(u), layer: layer, etype: etype, code: code, headers: iwarptest.DDPHeader, event: event}
	}
	x := []byte("x")
	tryAll(t, []offence{
		bad("DDP version 0", iwarptest.Overwrite(iwarptest.Send(1, x...), 0, 0x40), 1, 2, 6, verbs.EventDDPVersion),
		bad("DDP version 2", iwarptest.Overwrite(iwarptest.Send(1, x...), 0, 0x42), 1, 2, 6, verbs.EventDDPVersion),
		bad("DDP version 3", iwarptest.Overwrite(iwarptest.Send(1, x...), 0, 0x43), 1, 2, 6, verbs.EventDDPVersion),
		bad("DDP version of an empty message", iwarptest.Overwrite(iwarptest.Send(1), 0, 0x40), 1, 2, 6, verbs.EventDDPVersion),
		bad("RDMAP version 0", iwarptest.Overwrite(iwarptest.Send(1, x...), 1, 0x03), 0, 2, 5, verbs.EventRDMAVersion),
		bad("RDMAP version 2", iwarptest.Overwrite(iwarptest.Send(1, x...), 1, 0x83), 0, 2, 5, verbs.EventRDMAVersion),
		bad("RDMAP version 3", iwarptest.Overwrite(iwarptest.Send(1, x...), 1, 0xC3), 0, 2, 5, verbs.EventRDMAVersion),
		bad("RDMAP version of an Atomic Request", iwarptest.Overwrite(iwarptest.AtomicRequest(1, iwarptest.Atomic{}), 1, 0x8A), 0, 2, 5, verbs.EventRDMAVersion),
		bad("RDMAP version 0 of Immediate Data", iwarptest.Overwrite(iwarptest.Immediate(1, Fill(8, 1)...), 1, 0x08), 0, 2, 5, verbs.EventRDMAVersion),
		bad("version before opcode", iwarptest.Overwrite(iwarptest.Send(1, x...), 1, 0x8F), 0, 2, 5, verbs.EventRDMAVersion),
		bad("opcode C", iwarptest.Untagged(0xC, 0, 0, 1, 0, x...), 0, 2, 6, verbs.EventOpcode),
		bad("opcode D", iwarptest.Untagged(0xD, 0, 0, 1, 0, x...), 0, 2, 6, verbs.EventOpcode),
		bad("opcode E", iwarptest.Untagged(0xE, 0, 1, 1, 0, x...), 0, 2, 6, verbs.EventOpcode),
		bad("opcode F", iwarptest.Untagged(0xF, 0, 3, 1, 0, x...), 0, 2, 6, verbs.EventOpcode),
		bad("an untagged Write", iwarptest.Untagged(0, 0, 0, 1, 0, x...), 0, 2, 6, verbs.EventOpcode),
		bad("an untagged Read Response", iwarptest.Untagged(2, 0, 0, 1, 0, x...), 0, 2, 6, verbs.EventOpcode),
		bad("a Send on queue 1", iwarptest.Untagged(3, 0, 1, 1, 0, x...), 0, 2, 6, verbs.EventOpcode),
		bad("a Send on queue 2", iwarptest.Untagged(3, 0, 2, 1, 0, x...), 0, 2, 6, verbs.EventOpcode),
		bad("a Send on queue 3", iwarptest.Untagged(3, 0, 3, 1, 0, x...), 0, 2, 6, verbs.EventOpcode),
		bad("a Send with SE and Invalidate on queue 1", iwarptest.Untagged(6, 5, 1, 1, 0, x...), 0, 2, 6, verbs.EventOpcode),
		bad("a Read Request on queue 0", iwarptest.Overwrite(iwarptest.ReadRequest(1, iwarptest.Read{}), 9, 0), 0, 2, 6, verbs.EventOpcode),
		bad("a Read Request on queue 2", iwarptest.Overwrite(iwarptest.ReadRequest(1, iwarptest.Read{}), 9, 2), 0, 2, 6, verbs.EventOpcode),
		bad("a Terminate on queue 0", iwarptest.Overwrite(terminate(1, 0, 0, 0), 9, 0), 0, 2, 6, verbs.EventOpcode),
		bad("a Terminate on queue 1", iwarptest.Overwrite(terminate(1, 0, 0, 0), 9, 1), 0, 2, 6, verbs.EventOpcode),
		bad("Immediate Data on queue 1", iwarptest.Overwrite(iwarptest.Immediate(1, Fill(8, 1)...), 9, 1), 0, 2, 6, verbs.EventOpcode),
		bad("an Atomic Request on queue 3", iwarptest.Overwrite(iwarptest.AtomicRequest(1, iwarptest.Atomic{}), 9, 3), 0, 2, 6, verbs.EventOpcode),
		bad("an Atomic Response on queue 0", iwarptest.Overwrite(iwarptest.AtomicResponse(1, 1, 1), 9, 0), 0, 2, 6, verbs.EventOpcode),
		bad("queue 4", iwarptest.Overwrite(iwarptest.Send(1, x...), 9, 4), 1, 2, 1, verbs.EventQueueNumber),
		bad("queue 2^32-1", iwarptest.Overwrite(iwarptest.Send(1, x...), 6, 255, 255, 255, 255), 1, 2, 1, verbs.EventQueueNumber),
		bad("an empty message on queue 7", iwarptest.Overwrite(iwarptest.Send(1), 9, 7), 1, 2, 1, verbs.EventQueueNumber),
		bad("queue 256 of an Atomic Request", iwarptest.Overwrite(iwarptest.AtomicRequest(1, iwarptest.Atomic{}), 8, 1, 0), 1, 2, 1, verbs.EventQueueNumber),
		bad("MSN 0", iwarptest.Send(0, x...), 1, 2, 3, verbs.EventRQMSNRange),
		bad("MSN 2 first", iwarptest.Send(2, x...), 1, 2, 3, verbs.EventRQMSNGap),
		bad("MSN 2^32-1", iwarptest.Send(1<<32-1, x...), 1, 2, 3, verbs.EventRQMSNRange),
		bad("MSN of an empty message", iwarptest.Send(3), 1, 2, 3, verbs.EventRQMSNRange),
		bad("MSN 2 of Immediate Data first", iwarptest.Immediate(2, Fill(8, 1)...), 1, 2, 3, verbs.EventRQMSNGap),
		bad("MSN 2 of a Read Request first", iwarptest.ReadRequest(2, iwarptest.Read{}), 1, 2, 3, verbs.EventIRRQMSNGap),
		bad("MSN 4 of a Read Request with IRD 2", iwarptest.ReadRequest(4, iwarptest.Read{}), 1, 2, 3, verbs.EventIRRQMSNRange),
		bad("MSN 0 of a Read Request", iwarptest.ReadRequest(0, iwarptest.Read{}), 1, 2, 3, verbs.EventIRRQMSNRange),
		bad("MSN 2 of a Terminate", iwarptest.Overwrite(terminate(1, 0, 0, 0), 13, 2), 1, 2, 3, verbs.EventIRRQMSNRange),
		bad("MO 1 first", iwarptest.Untagged(3, 0, 0, 1, 1, x...), 1, 2, 4, verbs.EventRQMessage),
		bad("MO beyond the receive", iwarptest.Untagged(3, 0, 0, 1, recvSize+1, x...), 1, 2, 4, verbs.EventRQMessage),
		bad("MO that wraps", iwarptest.Untagged(3, 0, 0, 1, 1<<32-1, x...), 1, 2, 4, verbs.EventRQMessage),
		bad("MO of a Read Request", iwarptest.Overwrite(iwarptest.ReadRequest(1, iwarptest.Read{}), 17, 4), 1, 2, 4, verbs.EventBadReadRequest),
		bad("Immediate Data of 7 octets", iwarptest.Immediate(1, Fill(7, 1)...), 0, 2, 0xFF, verbs.EventNoLastBit),
		bad("Immediate Data of 9 octets", iwarptest.Immediate(1, Fill(9, 1)...), 0, 2, 0xFF, verbs.EventNoLastBit),
		bad("Immediate Data of no octets", iwarptest.Immediate(1), 0, 2, 0xFF, verbs.EventNoLastBit),
		bad("Immediate Data with SE of 16 octets", iwarptest.Overwrite(iwarptest.Immediate(1, Fill(16, 1)...), 1, 0x49), 0, 2, 0xFF, verbs.EventNoLastBit),
		bad("Immediate Data without L", iwarptest.ClearLast(iwarptest.Immediate(1, Fill(8, 1)...)), 0, 2, 7, verbs.EventNoLastBit),
		bad("a Read Request without L", iwarptest.ClearLast(iwarptest.ReadRequest(1, iwarptest.Read{})), 0, 2, 7, verbs.EventNoLastBit),
		bad("an Atomic Request without L", iwarptest.ClearLast(iwarptest.AtomicRequest(1, iwarptest.Atomic{})), 0, 2, 7, verbs.EventNoLastBit),
		bad("a Read Request of 27 octets", iwarptest.ReadRequest(1, iwarptest.Read{})[:18+27], 0, 2, 0xFF, verbs.EventBadReadRequest),
		bad("a Read Request of 29 octets", append(iwarptest.ReadRequest(1, iwarptest.Read{}), 0), 0, 2, 0xFF, verbs.EventBadReadRequest),
		bad("a Read Request of no octets", iwarptest.ReadRequest(1, iwarptest.Read{})[:18], 0, 2, 0xFF, verbs.EventBadReadRequest),
		bad("an Atomic Request of 51 octets", iwarptest.AtomicRequest(1, iwarptest.Atomic{})[:18+51], 0, 2, 0xFF, verbs.EventBadReadRequest),
		bad("an Atomic Request of 53 octets", append(iwarptest.AtomicRequest(1, iwarptest.Atomic{}), 0), 0, 2, 0xFF, verbs.EventBadReadRequest),
		bad("a Terminate of 200 octets", terminate(Fill(200, 0)...), 1, 2, 5, verbs.EventRQMessage),
	})
}
