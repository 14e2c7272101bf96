package wiretest

import (
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// A tagged access is checked for each segment, and refused whole: STag, domain,
// rights, wrap, bounds, in this order. One octet on either side of a region is
// too many.
//
// Claims: DDP-4.2-5 DDP-7.1-11 DDP-7.1-12 DDP-7.1-13 DDP-7.1-14 DDP-7.1-15 DDP-7.1-16 DDP-7.1-17 DDP-7.1-19 DDP-7.2-1
// Claims: DDP-8.2-1 DDP-8.3-1 DDP-8.3-2 DDP-8.3-5 DDP-8.3.1-1 DDP-8.3.1-3 DDP-8.3.1-4 DDP-8.3.1-5
// Claims: R-7.2-1 R-7.2-2 R-7.2-3 R-7.1-3 R-7.1-1 R-5.1-1 R-8.1.1-1 R-8.1.1-3 R-8.1.1-4 R-8.1.1-5
// Claims: DDP-8.2-2 DDP-8.3-3 DDP-8.3.1-2 R-8.1.1-2
// Claims: D-10.3-1 D-10.3-2 D-10.3-3 D-10.3-11
// Claims: V-8.1.2.2-2 V-10.3-1 V-10.3-2 V-10.3-7
// Claims: V-6.4-11 V-7.4.2-3
// Claims: V-9.5.3-17 V-9.5.3-18 V-9.5.3-19 V-9.5.3-21
// Claims: V-9.5.3-14 V-9.5.3-16 V-9.5.3-20 V-8.3.3-6 V-8.3.3-7
// Claims: R-3.1-10 R-3.2-11 R-5.1-3 S-2.2.2-1 S-6.1.1-4
func TestTaggedSegmentsThatBreakARuleAreRefused(t *testing.T) {
	const (
		noSTag, bounds, access, wrap = 0, 1, 2, 3 // RFC 5041 §7.2, error type 1
		long                         = 40000      // is read straight to its place, where that is done
	)
	// write is a refused Write of n octets to what where names.
	write := func(name string, code byte, event verbs.EventID, where func(*stage) (uint32, uint64), n int) offence {
		return offence{name: name, layer: 1, etype: 1, code: code, headers: iwarptest.DDPHeader, event: event,
			send: func(s *stage) [][]byte {
				stag, to := where(s)
				return [][]byte{iwarptest.Write(stag, to, Fill(n, 0xEE)...)}
			}}
	}
	header := func(name string, u []byte, layer, etype, code byte, event verbs.EventID) offence {
		return offence{name: name, send: one(u), layer: layer, etype: etype, code: code, headers: iwarptest.DDPHeader, event: event}
	}
	badSTag, badBounds := verbs.EventProtectionSTag, verbs.EventProtectionBounds
	badAccess, badWrap := verbs.EventProtectionAccess, verbs.EventProtectionWrap
	x := []byte("x")
	tryAll(t, []offence{
		header("DDP version 0", iwarptest.Overwrite(iwarptest.Write(1, 1, x...), 0, 0xC0), 1, 1, 4, verbs.EventDDPVersion),
		header("DDP version 2 without L", iwarptest.Overwrite(iwarptest.Write(1, 1, x...), 0, 0x82), 1, 1, 4, verbs.EventDDPVersion),
		header("DDP version 3 of an empty message", iwarptest.Overwrite(iwarptest.Write(1, 1), 0, 0xC3), 1, 1, 4, verbs.EventDDPVersion),
		header("RDMAP version 0", iwarptest.Overwrite(iwarptest.Write(1, 1, x...), 1, 0x00), 0, 2, 5, verbs.EventRDMAVersion),
		header("RDMAP version 2", iwarptest.Overwrite(iwarptest.Write(1, 1, x...), 1, 0x80), 0, 2, 5, verbs.EventRDMAVersion),
		header("a tagged Send", iwarptest.Tagged(3, 1, 1, x...), 0, 2, 6, verbs.EventOpcode),
		header("a tagged Read Request", iwarptest.Tagged(1, 1, 1, x...), 0, 2, 6, verbs.EventOpcode),
		header("a tagged Terminate", iwarptest.Tagged(7, 1, 1, x...), 0, 2, 6, verbs.EventOpcode),
		header("tagged Immediate Data", iwarptest.Tagged(8, 1, 1, x...), 0, 2, 6, verbs.EventOpcode),
		header("a tagged Atomic Request", iwarptest.Tagged(0xA, 1, 1, x...), 0, 2, 6, verbs.EventOpcode),
		header("tagged opcode C", iwarptest.Tagged(0xC, 1, 1, x...), 0, 2, 6, verbs.EventOpcode),
		header("tagged opcode F, empty", iwarptest.Tagged(0xF, 1, 1), 0, 2, 6, verbs.EventOpcode),

		write("STag 0", noSTag, badSTag, func(s *stage) (uint32, uint64) { return 0, s.exposedTO }, 4),
		write("an unknown STag", noSTag, badSTag, func(s *stage) (uint32, uint64) { return s.unknownTag, s.exposedTO }, 4),
		write("an unknown STag, long", noSTag, badSTag, func(s *stage) (uint32, uint64) { return s.unknownTag, s.exposedTO }, long),
		write("another key", noSTag, badSTag, func(s *stage) (uint32, uint64) { return s.staleKeyTag, s.exposedTO }, 4),
		write("a revoked STag", noSTag, badSTag, func(s *stage) (uint32, uint64) { return s.revokedTag, s.exposedTO }, 4),
		write("an unknown STag and a wrap", noSTag, badSTag, func(s *stage) (uint32, uint64) { return s.unknownTag, 1<<64 - 1 }, 4),
		write("another domain's STag", access, verbs.EventProtectionPD, func(s *stage) (uint32, uint64) { return s.foreignTag, s.exposedTO }, 4),
		write("another domain's STag, long", access, verbs.EventProtectionPD, func(s *stage) (uint32, uint64) { return s.foreignTag, s.exposedTO }, long),
		write("another stream's STag", access, verbs.EventProtectionPD, func(s *stage) (uint32, uint64) { return s.siblingTag, s.exposedTO }, 4),
		write("a region for local use", access, badAccess, func(s *stage) (uint32, uint64) { return s.localTag, s.aloneTO }, 4),
		write("a region to be read", access, badAccess, func(s *stage) (uint32, uint64) { return s.readableTag, s.aloneTO }, 4),
		write("no right and out of bounds", access, badAccess, func(s *stage) (uint32, uint64) { return s.readableTag, 0 }, 4),
		write("one octet before", bounds, badBounds, func(s *stage) (uint32, uint64) { return s.exposedTag, s.exposedTO - 1 }, 4),
		write("one octet behind", bounds, badBounds, func(s *stage) (uint32, uint64) { return s.exposedTag, s.exposedEnd }, 1),
		write("one octet over the end", bounds, badBounds, func(s *stage) (uint32, uint64) { return s.exposedTag, s.exposedEnd - 3 }, 4),
		write("one octet over the end, long", bounds, badBounds, func(s *stage) (uint32, uint64) { return s.exposedTag, s.exposedEnd - long + 1 }, long),
		write("one octet before, long", bounds, badBounds, func(s *stage) (uint32, uint64) { return s.exposedTag, s.exposedTO - 1 }, long),
		write("one octet over, of a small region", bounds, badBounds, func(s *stage) (uint32, uint64) { return s.writableTag, s.aloneTO }, aloneLen+1),
		write("offset 0", bounds, badBounds, func(s *stage) (uint32, uint64) { return s.exposedTag, 0 }, 4),
		write("just below 2^64", bounds, badBounds, func(s *stage) (uint32, uint64) { return s.exposedTag, 1<<64 - 4 }, 4),
		write("a wrap", wrap, badWrap, func(s *stage) (uint32, uint64) { return s.exposedTag, 1<<64 - 1 }, 2),
		write("a wrap, long", wrap, badWrap, func(s *stage) (uint32, uint64) { return s.exposedTag, 1<<64 - long + 1 }, long),
		write("a wrap at the top of a region", wrap, badWrap, func(s *stage) (uint32, uint64) { return s.topTag, 1<<64 - 3 }, 4),
		{
			name: "Writes not enabled", layer: 1, etype: 1, code: access, headers: iwarptest.DDPHeader, event: verbs.EventWriteDisabled,
			config: func(c *verbs.QPConfig) { c.NoRemoteWrite = true },
			send:   func(s *stage) [][]byte { return [][]byte{iwarptest.Write(s.exposedTag, s.exposedTO, x...)} },
		},
		{
			name: "the second segment over the end", layer: 1, etype: 1, code: bounds, headers: iwarptest.DDPHeader, event: badBounds,
			send: func(s *stage) [][]byte {
				return iwarptest.Split(iwarptest.Write(s.exposedTag, s.exposedEnd-8, Fill(12, 0xEE)...), 8)
			},
			culprit: 1,
			placed:  func(s *stage) { s.Expect(exposedOff+exposedLen-8, Fill(8, 0xEE)...) },
		},
		{
			name: "a gap in a message", layer: 0, etype: 2, code: 7, headers: iwarptest.DDPHeader, event: verbs.EventNoLastBit,
			send: func(s *stage) [][]byte {
				return [][]byte{iwarptest.ClearLast(iwarptest.Write(s.exposedTag, s.exposedTO, 0xEE, 0xEE)), iwarptest.Write(s.exposedTag, s.exposedTO+4, 0xEE)}
			},
			placed: func(s *stage) { s.Expect(exposedOff, 0xEE, 0xEE) },
		},
		{
			name: "another STag within a message", layer: 0, etype: 2, code: 7, headers: iwarptest.DDPHeader, event: verbs.EventNoLastBit,
			send: func(s *stage) [][]byte {
				return [][]byte{iwarptest.ClearLast(iwarptest.Write(s.exposedTag, s.exposedTO, 0xEE, 0xEE)), iwarptest.Write(s.topTag, s.exposedTO+2, 0xEE)}
			},
			placed: func(s *stage) { s.Expect(exposedOff, 0xEE, 0xEE) },
		},
		{
			name: "another opcode within a message", layer: 0, etype: 2, code: 7, headers: iwarptest.DDPHeader, event: verbs.EventNoLastBit,
			send: func(s *stage) [][]byte {
				return [][]byte{iwarptest.ClearLast(iwarptest.Write(s.exposedTag, s.exposedTO, 0xEE, 0xEE)), iwarptest.ReadResponse(s.exposedTag, s.exposedTO+2, 0xEE)}
			},
			placed: func(s *stage) { s.Expect(exposedOff, 0xEE, 0xEE) },
		},
	})
}

// A ULPDU that is too short for its header is DDP's local error: there is no header to
// report.
//
// Claims: R-7.2-1 DDP-6.2.2-1
// Claims: V-9.5.3-6 V-8.3.3-5
func TestULPDUsWithoutAHeaderAreRefused(t *testing.T) {
	bad := func(name string, u []byte) offence {
		return offence{name: name, send: one(u), layer: 1, headers: iwarptest.NoHeaders, event: verbs.EventSegmentSize}
	}
	tryAll(t, []offence{
		bad("no octets", nil),
		bad("one octet", []byte{0x41}),
		bad("17 of 18 octets", iwarptest.Send(1)[:17]),
		bad("13 of 14 octets", iwarptest.Write(1, 1)[:13]),
	})
}

// The octets of a region are all there: the first, the last, and the very last
// of all tagged offsets.
//
// Claims: DDP-7.1-14 DDP-5.2-4 R-5.1-2 DDP-8.2-5 D-10.3-5 D-10.3-7
// Claims: V-10.3-7
// Claims: R-1.2-4
func TestTheFirstAndTheLastOctetOfARegionCanBeWritten(t *testing.T) {
	for _, w := range Wires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			s.Peer = s.ln.Connect(s.QP)
			s.must(s.Send(
				iwarptest.Write(s.exposedTag, s.exposedTO, 1),
				iwarptest.Write(s.exposedTag, s.exposedEnd-1, 2),
				iwarptest.Write(s.topTag, 1<<64-3, 3, 4), // octets 2^64-3 and 2^64-2
				iwarptest.Write(s.writableTag, s.aloneTO, Fill(aloneLen, 5)...),
				iwarptest.Write(s.topTag, s.topTO+1, Fill(40000, 6)...),
				iwarptest.Write(s.boundTag, s.exposedTO+50000, 7),
			))
			s.Expect(exposedOff, 1)
			s.Expect(exposedOff+exposedLen-3, 3, 4, 2)
			s.Expect(aloneOff, Fill(aloneLen, 5)...)
			s.Expect(exposedOff+1, Fill(40000, 6)...)
			s.Expect(exposedOff+50000, 7)
			s.farewell()
		})
	}
}

// farewell has the Peer close a stream with nothing outstanding.
func (s *stage) farewell() {
	s.t.Helper()
	s.ExpectEvent(verbs.EventLLPCloseComplete)
	s.must(s.CloseWrite())
	s.answered()
	s.must(s.Peer.Close())
	s.Reach(verbs.Idle)
	s.CheckMemory()
	if err := s.QP.Err(); err != nil {
		s.t.Errorf("a graceful close left %v", err)
	}
}
