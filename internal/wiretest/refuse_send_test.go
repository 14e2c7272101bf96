package wiretest

import (
	"slices"
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// Sends find the receives in order, each one octet-exact, and each once.
//
// Claims: R-5.3-2 R-5.5-19 R-7.1-6 X-6.3-2 DDP-7.1-2 DDP-7.1-3 DDP-7.1-4 DDP-7.1-5 DDP-5.3-5 DDP-5.4-2
// Claims: V-9.5.3-24 V-13.2-1
// Claims: R-3.2-4 R-5.3-4
func TestSendsThatDoNotFitTheReceivesAreRefused(t *testing.T) {
	fill := func(n int) []byte { return Fill(n, 0xEE) }
	whole := func(n int) func(*stage) {
		return func(s *stage) { s.Expect(recvOff, fill(n)...) }
	}
	tryAll(t, []offence{
		{
			name: "a third message", layer: 1, etype: 2, code: 2, headers: iwarptest.DDPHeader, event: verbs.EventRQMSNRange,
			send:     one3(iwarptest.Send(1, fill(1)...), iwarptest.Send(2), iwarptest.Send(3, fill(1)...)),
			receives: []verbs.Status{verbs.Success, verbs.Success}, placed: whole(1),
		},
		{
			name: "a third message that is empty", layer: 1, etype: 2, code: 2, headers: iwarptest.DDPHeader, event: verbs.EventRQMSNRange,
			send:     one3(iwarptest.Send(1), iwarptest.Send(2), iwarptest.Send(3)),
			receives: []verbs.Status{verbs.Success, verbs.Success},
		},
		{
			name: "Immediate Data as the third message", layer: 1, etype: 2, code: 2, headers: iwarptest.DDPHeader, event: verbs.EventRQMSNRange,
			send:     one3(iwarptest.Send(1), iwarptest.Immediate(2, fill(8)...), iwarptest.Immediate(3, fill(8)...)),
			receives: []verbs.Status{verbs.Success, verbs.Success},
		},
		{
			name: "a message one octet too long", layer: 1, etype: 2, code: 5, headers: iwarptest.DDPHeader,
			send:     one(iwarptest.Send(1, fill(recvSize+1)...)),
			receives: []verbs.Status{verbs.BaseBounds},
		},
		{
			name: "a long message that is too long", layer: 1, etype: 2, code: 5, headers: iwarptest.DDPHeader,
			send:     one(iwarptest.Send(1, fill(40000)...)),
			receives: []verbs.Status{verbs.BaseBounds},
		},
		{
			name: "the second message too long", layer: 1, etype: 2, code: 5, headers: iwarptest.DDPHeader,
			send: func(*stage) [][]byte {
				return [][]byte{iwarptest.Send(1, fill(recvSize)...), iwarptest.Send(2, fill(recvSize+1)...)}
			},
			receives: []verbs.Status{verbs.Success, verbs.BaseBounds}, placed: whole(recvSize),
		},
		{
			name: "the last segment too long", layer: 1, etype: 2, code: 5, headers: iwarptest.DDPHeader,
			send:     func(*stage) [][]byte { return iwarptest.Split(iwarptest.Send(1, fill(recvSize+1)...), recvSize/2) },
			culprit:  2,
			receives: []verbs.Status{verbs.BaseBounds}, placed: whole(recvSize),
		},
		{
			name: "a message twice", layer: 1, etype: 2, code: 3, headers: iwarptest.DDPHeader, event: verbs.EventRQMSNRange,
			send:     func(*stage) [][]byte { return [][]byte{iwarptest.Send(1, fill(4)...), iwarptest.Send(1, 1, 2, 3, 4)} },
			receives: []verbs.Status{verbs.Success}, placed: whole(4),
		},
		{
			name: "a message left out", layer: 1, etype: 2, code: 3, headers: iwarptest.DDPHeader, event: verbs.EventRQMSNRange,
			send:     func(*stage) [][]byte { return [][]byte{iwarptest.Send(1, fill(4)...), iwarptest.Send(3, 1, 2, 3, 4)} },
			receives: []verbs.Status{verbs.Success}, placed: whole(4),
		},
		{
			name: "a segment twice", layer: 1, etype: 2, code: 4, headers: iwarptest.DDPHeader, event: verbs.EventRQMessage,
			send: func(*stage) [][]byte {
				return [][]byte{iwarptest.ClearLast(iwarptest.Send(1, fill(4)...)), iwarptest.Send(1, 1, 2, 3, 4)}
			},
			placed: whole(4),
		},
		{
			name: "a segment left out", layer: 1, etype: 2, code: 4, headers: iwarptest.DDPHeader, event: verbs.EventRQMessage,
			send:   func(*stage) [][]byte { return slices.Delete(iwarptest.Split(iwarptest.Send(1, fill(12)...), 4), 1, 2) },
			placed: whole(4),
		},
		{
			name: "the next message without the last one's L", layer: 1, etype: 2, code: 3, headers: iwarptest.DDPHeader, event: verbs.EventRQMSNGap,
			send: func(*stage) [][]byte {
				return [][]byte{iwarptest.ClearLast(iwarptest.Send(1, fill(4)...)), iwarptest.Send(2, 1, 2, 3, 4)}
			},
			placed: whole(4),
		},
		{
			name: "another opcode within a message", layer: 0, etype: 2, code: 7, headers: iwarptest.DDPHeader, event: verbs.EventNoLastBit,
			send: func(*stage) [][]byte {
				return [][]byte{iwarptest.ClearLast(iwarptest.Send(1, fill(4)...)), iwarptest.Untagged(5, 0, 0, 1, 4, 1, 2)}
			},
			placed: whole(4),
		},
		{
			name: "two offences at once: the first is reported", layer: 1, etype: 2, code: 4, headers: iwarptest.DDPHeader, event: verbs.EventRQMessage,
			send: func(s *stage) [][]byte {
				return [][]byte{iwarptest.Send(1, fill(4)...), iwarptest.Untagged(3, 0, 0, 2, 9, 1), iwarptest.Write(s.unknownTag, 0, 1), iwarptest.Overwrite(iwarptest.Send(2), 0, 0x40)}
			},
			culprit:  1,
			receives: []verbs.Status{verbs.Success}, placed: whole(4),
		},
	})
}

func one3(a, b, c []byte) func(*stage) [][]byte {
	return func(*stage) [][]byte { return [][]byte{a, b, c} }
}

// A Send with Invalidate is in place and its STag looked at before it
// completes; what may not be invalidated makes it complete in error.
//
// Claims: R-5.3-14 R-5.3-15 R-7.2-4 R-7.2-5 R-8.1.1-1 D-7.3-1 D-10.3-9
// Claims: S-6.4.5-1
func TestSTagsThatThePeerMayNotInvalidateStayValid(t *testing.T) {
	invalidate := func(name string, code byte, stag func(*stage) uint32) offence {
		return offence{
			name: name, layer: 0, etype: 1, code: code, headers: iwarptest.DDPHeader,
			send:     func(s *stage) [][]byte { return [][]byte{iwarptest.SendInvalidate(1, stag(s), 0xEE)} },
			receives: []verbs.Status{verbs.InvalidateRefused},
			placed:   func(s *stage) { s.Expect(recvOff, 0xEE) },
			after: func(s *stage) {
				for _, mr := range []*verbs.MR{s.exposed, s.foreign, s.local, s.sibling} {
					if !mr.Valid() {
						s.t.Errorf("STag %v has been invalidated", mr.STag())
					}
				}
			},
		}
	}
	withSE := invalidate("unknown, with SE", 0, func(s *stage) uint32 { return s.unknownTag })
	withSE.send = func(s *stage) [][]byte { return [][]byte{iwarptest.Untagged(6, s.unknownTag, 0, 1, 0, 0xEE)} }
	disabled := invalidate("a queue pair without remote rights", 2, func(s *stage) uint32 { return s.exposedTag })
	disabled.config = func(c *verbs.QPConfig) { c.NoRemoteRead, c.NoRemoteWrite = true, true }
	tryAll(t, []offence{
		invalidate("STag 0", 0, func(*stage) uint32 { return 0 }),
		invalidate("unknown", 0, func(s *stage) uint32 { return s.unknownTag }),
		invalidate("another key", 0, func(s *stage) uint32 { return s.staleKeyTag }),
		invalidate("another domain's", 9, func(s *stage) uint32 { return s.foreignTag }),
		invalidate("another stream's", 9, func(s *stage) uint32 { return s.siblingTag }),
		invalidate("for local use", 2, func(s *stage) uint32 { return s.localTag }),
		withSE, disabled,
	})
}

// Claims: R-5.3-14 D-10.3-13 R-4.1-4
// Claims: V-8.2.2.1-1
// Claims: V-9.3.2.1-5
// Claims: R-1.2-2 R-2.4-2
func TestAnSTagIsInvalidBeforeTheSendThatInvalidatesItCompletes(t *testing.T) {
	for _, w := range Wires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			s.Receives(s.recv, 0, recvSize, 2)
			s.Peer = s.ln.Connect(s.QP)
			s.must(s.Send(iwarptest.Write(s.writableTag, s.aloneTO, 1), iwarptest.SendInvalidate(1, s.writableTag, 0xEE)))
			wc := s.Statuses(s.RecvCQ, 100, verbs.Success)[0]
			if s.writable.Valid() {
				t.Error("the STag is valid after the completion")
			}
			if !wc.HasInvalidated || uint32(wc.Invalidated) != s.writableTag || wc.Bytes != 1 {
				t.Errorf("completion %+v", wc)
			}
			s.Expect(aloneOff, 1)
			s.Expect(recvOff, 0xEE)
			s.ExpectEvent(verbs.EventProtectionSTag)
			late := iwarptest.Write(s.writableTag, s.aloneTO, 2)
			s.must(s.Send(late))
			s.answered(iwarptest.Terminate(1, 1, 0, iwarptest.DDPHeader, late))
			s.must(s.Peer.Close())
			s.Reach(verbs.Error)
			s.CheckMemory()
			s.Statuses(s.RecvCQ, 101, verbs.Flushed)
			s.serves()
		})
	}
}
