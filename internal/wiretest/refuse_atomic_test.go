package wiretest

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// An Atomic Request that cannot be executed changes nothing and gets no response. The
// Terminate message has no RDMA header (RFC 7306 §8.1).
//
// Claims: X-5.1.1-5 X-5.1.1-6 X-5.1.1-7 X-5.1.2-6 X-5.1.2-7 X-5.1.2-8 X-8.2-4 X-8.2-5 X-5.2.1-17 X-8.1-2 X-5.2.1-14
// Claims: X-8.2-6 X-9-1
func TestAtomicRequestsThatCannotBeDoneAreRefused(t *testing.T) {
	atomic := func(name string, etype, code byte, event verbs.EventID, ask func(*stage) iwarptest.Atomic) offence {
		return offence{name: name, layer: 0, etype: etype, code: code, headers: iwarptest.DDPHeader, event: event,
			send: func(s *stage) [][]byte {
				a := ask(s)
				a.ID, a.Data, a.Mask = 9, 1, 1<<64-1
				return [][]byte{iwarptest.AtomicRequest(1, a)}
			}}
	}
	cases := []offence{
		atomic("AOpCode 1", 2, 6, verbs.EventOpcode, func(s *stage) iwarptest.Atomic {
			return iwarptest.Atomic{AOpCode: 1, STag: s.exposedTag, TO: s.exposedTO}
		}),
		atomic("AOpCode 3", 2, 6, verbs.EventOpcode, func(s *stage) iwarptest.Atomic {
			return iwarptest.Atomic{AOpCode: 3, STag: s.exposedTag, TO: s.exposedTO}
		}),
		atomic("AOpCode F", 2, 6, verbs.EventOpcode, func(s *stage) iwarptest.Atomic {
			return iwarptest.Atomic{AOpCode: 15, STag: s.exposedTag, TO: s.exposedTO}
		}),
		atomic("an unknown STag", 1, 0, verbs.EventIRRQSTag, func(s *stage) iwarptest.Atomic { return iwarptest.Atomic{STag: s.unknownTag, TO: s.exposedTO} }),
		atomic("another key", 1, 0, verbs.EventIRRQSTag, func(s *stage) iwarptest.Atomic { return iwarptest.Atomic{STag: s.staleKeyTag, TO: s.exposedTO} }),
		atomic("a revoked STag", 1, 0, verbs.EventIRRQSTag, func(s *stage) iwarptest.Atomic {
			return iwarptest.Atomic{AOpCode: 2, STag: s.revokedTag, TO: s.exposedTO}
		}),
		atomic("another domain's STag", 1, 3, verbs.EventIRRQPD, func(s *stage) iwarptest.Atomic { return iwarptest.Atomic{STag: s.foreignTag, TO: s.exposedTO} }),
		atomic("another stream's STag", 1, 3, verbs.EventIRRQPD, func(s *stage) iwarptest.Atomic { return iwarptest.Atomic{STag: s.siblingTag, TO: s.exposedTO} }),
		atomic("a region to be read", 1, 2, verbs.EventIRRQAccess, func(s *stage) iwarptest.Atomic { return iwarptest.Atomic{STag: s.readableTag, TO: s.aloneTO} }),
		atomic("a region to be written", 1, 2, verbs.EventIRRQAccess, func(s *stage) iwarptest.Atomic {
			return iwarptest.Atomic{AOpCode: 2, STag: s.writableTag, TO: s.aloneTO}
		}),
		atomic("one word before", 1, 1, verbs.EventIRRQBounds, func(s *stage) iwarptest.Atomic { return iwarptest.Atomic{STag: s.exposedTag, TO: s.exposedTO - 8} }),
		atomic("one word behind", 1, 1, verbs.EventIRRQBounds, func(s *stage) iwarptest.Atomic { return iwarptest.Atomic{STag: s.exposedTag, TO: s.exposedEnd} }),
		atomic("half a word over the end", 1, 1, verbs.EventIRRQBounds, func(s *stage) iwarptest.Atomic {
			return iwarptest.Atomic{AOpCode: 2, STag: s.exposedTag, TO: s.exposedEnd - 4}
		}),
		atomic("a wrap", 1, 4, verbs.EventIRRQWrap, func(s *stage) iwarptest.Atomic { return iwarptest.Atomic{STag: s.topTag, TO: 1<<64 - 4} }),
	}
	for _, config := range []func(*verbs.QPConfig){
		func(c *verbs.QPConfig) { c.NoRemoteRead = true }, func(c *verbs.QPConfig) { c.NoRemoteWrite = true },
	} {
		o := atomic("Reads or Writes not enabled", 1, 2, verbs.EventIRRQAccess, func(s *stage) iwarptest.Atomic { return iwarptest.Atomic{STag: s.exposedTag, TO: s.exposedTO} })
		o.config = config
		cases = append(cases, o)
	}
	for off := uint64(1); off < 8; off++ {
		cases = append(cases, atomic(fmt.Sprintf("%d octets off a word", off), 2, 7, verbs.EventNoLastBit, func(s *stage) iwarptest.Atomic {
			return iwarptest.Atomic{AOpCode: uint32(off % 2 * 2), STag: s.exposedTag, TO: s.exposedTO + off}
		}))
	}
	tryAll(t, cases)
}

// Alignment is that of the memory, not of the tagged offset.
//
// Claims: X-5.2.1-9 X-5.1.1-5 X-5.1.2-6
func TestAtomicsGoByTheAlignmentOfTheMemory(t *testing.T) {
	for _, w := range Wires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			odd := s.RegisterAs(s.PD, 0, exposedOff+4, 64, AllRights) // tagged offset 4 is aligned, 0 is not
			s.Peer = s.ln.Connect(s.QP)
			was := binary.NativeEndian.Uint64(s.Expected(exposedOff+8, 8))
			s.must(s.Send(iwarptest.AtomicRequest(1, iwarptest.Atomic{ID: 5, STag: uint32(odd.STag()), TO: 4, Data: 3})))
			s.Expect(exposedOff+8, binary.NativeEndian.AppendUint64(nil, was+3)...)
			if u, err := s.Next(); err != nil || string(u) != string(iwarptest.AtomicResponse(1, 5, was)) {
				t.Fatalf("answer % x, %v", u, err)
			}
			bad := iwarptest.AtomicRequest(2, iwarptest.Atomic{ID: 6, STag: uint32(odd.STag()), TO: 0, Data: 3})
			s.ExpectEvent(verbs.EventNoLastBit)
			s.must(s.Send(bad))
			s.answered(iwarptest.Terminate(0, 2, 7, iwarptest.DDPHeader, bad))
			s.must(s.Peer.Close())
			s.Reach(verbs.Error)
			s.wantError(0, 2, 7)
		})
	}
}

// Claims: X-5.2.2-5 X-5.2.2-9 X-5.4-9
// Claims: X-5.2.2-10
func TestAtomicResponsesThatWereNotAskedForAreRefused(t *testing.T) {
	const id = 0 // that of the first work request on the wire
	post := func(s *stage) {
		s.Post(verbs.SendWR{ID: 0, Op: verbs.OpFetchAdd, SGL: []verbs.SGE{s.exposed.SGE(0, 8)}, Remote: verbs.Remote{STag: 0x11223344, TO: 0x1000}})
		s.Post(verbs.SendWR{ID: 1, Op: verbs.OpRead, SGL: []verbs.SGE{s.exposed.SGE(8, 8)}, Remote: verbs.Remote{STag: 0x11223344, TO: 0x1000}})
	}
	bad := func(name string, layer, etype, code byte, event verbs.EventID, u []byte) offence {
		return offence{name: name, layer: layer, etype: etype, code: code, headers: iwarptest.DDPHeader, event: event, post: post, asks: 2,
			sends: []verbs.Status{verbs.Flushed, verbs.Flushed}, send: one(u)}
	}
	unasked := bad("nothing asked for", 1, 2, 2, verbs.EventIRRQMSNRange, iwarptest.AtomicResponse(1, id, 0))
	unasked.post, unasked.asks, unasked.sends = nil, 0, nil
	twice := bad("an answer twice", 1, 2, 2, verbs.EventIRRQMSNRange, nil)
	twice.send = func(*stage) [][]byte {
		return [][]byte{iwarptest.AtomicResponse(1, id, 0x77), iwarptest.AtomicResponse(2, id, 0x77)}
	}
	twice.sends = []verbs.Status{verbs.Success, verbs.Flushed}
	twice.placed = func(s *stage) { s.Expect(exposedOff, binary.NativeEndian.AppendUint64(nil, 0x77)...) }
	again := bad("an answer twice with one MSN", 1, 2, 3, verbs.EventIRRQMSNRange, nil)
	again.send = func(*stage) [][]byte {
		return [][]byte{iwarptest.AtomicResponse(1, id, 0x77), iwarptest.AtomicResponse(1, id, 0x77)}
	}
	again.sends, again.placed = twice.sends, twice.placed
	tryAll(t, []offence{
		unasked, twice, again,
		bad("another identifier", 0, 2, 7, verbs.EventNoLastBit, iwarptest.AtomicResponse(1, id+1, 0)),
		bad("MSN 2", 1, 2, 3, verbs.EventIRRQMSNRange, iwarptest.AtomicResponse(2, id, 0)),
		bad("11 octets", 0, 2, 0xFF, verbs.EventNoLastBit, iwarptest.AtomicResponse(1, id, 0)[:18+11]),
		bad("13 octets", 0, 2, 0xFF, verbs.EventNoLastBit, append(iwarptest.AtomicResponse(1, id, 0), 0)),
		bad("no L", 0, 2, 7, verbs.EventNoLastBit, iwarptest.ClearLast(iwarptest.AtomicResponse(1, id, 0))),
		bad("an offset", 1, 2, 4, verbs.EventRQMessage, iwarptest.Overwrite(iwarptest.AtomicResponse(1, id, 0), 17, 1)),
		bad("a Read Response instead", 0, 2, 6, verbs.EventOpcode, iwarptest.ReadResponse(0, 0, Fill(8, 0)...)),
	})
}
