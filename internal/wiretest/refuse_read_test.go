package wiretest

import (
	"slices"
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// A Read Request for octets that the peer may not read gets no Response, and
// the Terminate carries the request itself.
//
// Claims: R-5.2.1-2 R-5.2.1-13 R-7.2-6 R-7.2-7 R-7.2-8 R-7.2-9 R-7.2-10 R-7.1-4 R-7.1-6 R-6.1-9 R-4.8-34 R-4.8-1 R-4.8-2
// Claims: R-8.1.1-1 R-8.1.1-3 R-8.1.1-5 R-8.1.1-2 D-10.3-8 R-4.8-3
// Claims: V-8.1.2.2-2 V-10.3-8
// Claims: V-6-1
// Claims: V-6.4-7 V-6.4-11 V-7.4.2-4
// Claims: R-5.2.1-5 V-9.5.3-29 V-9.5.3-30 V-9.5.3-31 V-9.5.3-32 V-9.5.3-33
// Claims: V-9.5.3-13 V-9.5.3-26 V-9.5.3-27 V-8.3.3-6 V-8.3.3-10 V-6.5-11 V-4-4
// Claims: R-3.2-11 R-7.2-11 R-6.1-3 R-A.6-1 S-2.2.2-1 S-2.2.8-1 S-6.1.1-4 S-6.4.3.3-3
func TestReadRequestsForWhatThePeerMayNotReadAreRefused(t *testing.T) {
	const noSTag, bounds, access, domain, wrap = 0, 1, 2, 3, 4 // RFC 5040 §4.8, error type 1
	read := func(name string, code byte, event verbs.EventID, source func(*stage) (stag uint32, to uint64, n uint32)) offence {
		return offence{name: name, layer: 0, etype: 1, code: code, headers: iwarptest.ReadHeader, event: event,
			send: func(s *stage) [][]byte {
				stag, to, n := source(s)
				return [][]byte{iwarptest.ReadRequest(1, readOf(0xA1A2A3A4, 0xB1B2B3B4B5B6B7B8, n, stag, to))}
			}}
	}
	beyondIRD := func(name string, first, second, third []byte) offence {
		return offence{name: name, layer: 1, etype: 2, code: 3, headers: iwarptest.DDPHeader, event: verbs.EventIRRQFull,
			atOnce: true, send: one3(first, second, third),
			answers: func(*stage) [][]byte { return [][]byte{iwarptest.ReadResponse(1, 2), iwarptest.ReadResponse(3, 4)} },
		}
	}
	tryAll(t, []offence{
		read("STag 0", noSTag, verbs.EventIRRQSTag, func(s *stage) (uint32, uint64, uint32) { return 0, s.exposedTO, 1 }),
		read("an unknown STag", noSTag, verbs.EventIRRQSTag, func(s *stage) (uint32, uint64, uint32) { return s.unknownTag, s.exposedTO, 1 }),
		read("another key", noSTag, verbs.EventIRRQSTag, func(s *stage) (uint32, uint64, uint32) { return s.staleKeyTag, s.exposedTO, 1 }),
		read("a revoked STag", noSTag, verbs.EventIRRQSTag, func(s *stage) (uint32, uint64, uint32) { return s.revokedTag, s.exposedTO, 1 }),
		read("another domain's STag", domain, verbs.EventIRRQPD, func(s *stage) (uint32, uint64, uint32) { return s.foreignTag, s.exposedTO, 1 }),
		read("another stream's STag", domain, verbs.EventIRRQPD, func(s *stage) (uint32, uint64, uint32) { return s.siblingTag, s.exposedTO, 1 }),
		read("a region for local use", access, verbs.EventIRRQAccess, func(s *stage) (uint32, uint64, uint32) { return s.localTag, s.aloneTO, 1 }),
		read("a region to be written", access, verbs.EventIRRQAccess, func(s *stage) (uint32, uint64, uint32) { return s.writableTag, s.aloneTO, 1 }),
		read("one octet before", bounds, verbs.EventIRRQBounds, func(s *stage) (uint32, uint64, uint32) { return s.readableTag, s.aloneTO - 1, 8 }),
		read("one octet behind", bounds, verbs.EventIRRQBounds, func(s *stage) (uint32, uint64, uint32) { return s.readableTag, s.aloneTO + aloneLen, 1 }),
		read("one octet over the end", bounds, verbs.EventIRRQBounds, func(s *stage) (uint32, uint64, uint32) { return s.readableTag, s.aloneTO, aloneLen + 1 }),
		read("as long as can be", bounds, verbs.EventIRRQBounds, func(s *stage) (uint32, uint64, uint32) { return s.exposedTag, s.exposedTO, 1<<32 - 1 }),
		read("a wrap", wrap, verbs.EventIRRQWrap, func(s *stage) (uint32, uint64, uint32) { return s.exposedTag, 1<<64 - 1, 2 }),
		read("a wrap at the top of a region", wrap, verbs.EventIRRQWrap, func(s *stage) (uint32, uint64, uint32) { return s.topTag, 1<<64 - 8, 9 }),
		{
			name: "Reads not enabled", layer: 1, etype: 2, code: 1, headers: iwarptest.DDPHeader, event: verbs.EventReadDisabled,
			config: func(c *verbs.QPConfig) { c.NoRemoteRead = true },
			send: func(s *stage) [][]byte {
				return [][]byte{iwarptest.ReadRequest(1, readOf(1, 2, 1, s.exposedTag, s.exposedTO))}
			},
		},
		beyondIRD("a third Read with IRD 2", iwarptest.ReadRequest(1, iwarptest.Read{SinkSTag: 1, SinkTO: 2}), iwarptest.ReadRequest(2, iwarptest.Read{SinkSTag: 3, SinkTO: 4}), iwarptest.ReadRequest(3, iwarptest.Read{})),
		beyondIRD("an atomic as the third request with IRD 2", iwarptest.ReadRequest(1, iwarptest.Read{SinkSTag: 1, SinkTO: 2}), iwarptest.ReadRequest(2, iwarptest.Read{SinkSTag: 3, SinkTO: 4}), iwarptest.AtomicRequest(3, iwarptest.Atomic{})),
		{
			name: "the second request is refused", layer: 0, etype: 1, code: noSTag, headers: iwarptest.ReadHeader, event: verbs.EventIRRQSTag,
			send: func(s *stage) [][]byte {
				return [][]byte{
					iwarptest.ReadRequest(1, readOf(7, 8, 16, s.exposedTag, s.exposedTO)),
					iwarptest.ReadRequest(2, readOf(7, 8, 16, s.unknownTag, 0)),
					iwarptest.ReadRequest(3, readOf(7, 8, 16, s.foreignTag, 0)),
				}
			},
			culprit: 1,
			answers: func(s *stage) [][]byte { return [][]byte{iwarptest.ReadResponse(7, 8, s.Expected(exposedOff, 16)...)} },
		},
		{
			name: "a request left out", layer: 1, etype: 2, code: 3, headers: iwarptest.DDPHeader, event: verbs.EventIRRQMSNGap,
			send: func(s *stage) [][]byte {
				return [][]byte{iwarptest.ReadRequest(1, iwarptest.Read{SinkSTag: 7, SinkTO: 8}), iwarptest.ReadRequest(3, iwarptest.Read{})}
			},
			answers: func(s *stage) [][]byte { return [][]byte{iwarptest.ReadResponse(7, 8)} },
		},
	})
}

// Requests that are answered make room at once: as many as IRD go on forever.
//
// Claims: R-5.2.1-8 R-5.2.1-11 R-5.2.2-3 R-5.2.2-7 R-6.1-5 R-5.2.1-3 R-5.2.1-4 R-5.2-1 R-5.5-23 X-5.2.2-7 X-5.2.1-21
// Claims: V-6-2
// Claims: R-1.2-4 R-1.2-7 R-B-9 ME-3-1
func TestRequestsUpToIRDAreAllAnsweredInOrder(t *testing.T) {
	for _, w := range Wires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{IRD: 2})
			s.Peer = s.ln.Connect(s.QP)
			msn := uint32(0)
			sizes := [2]uint32{5000, 0}
			for round := range uint32(50) {
				var requests [][]byte
				for i, n := range sizes {
					msn++
					requests = append(requests, iwarptest.ReadRequest(msn, readOf(round, uint64(i), n, s.exposedTag, s.exposedTO)))
				}
				s.must(s.Send(requests...))
				for i, n := range sizes {
					m, err := s.NextMessage()
					if err != nil || m.Opcode != 2 || m.STag != round || m.TO != uint64(i) || !slices.Equal(m.Payload, s.Expected(exposedOff, int(n))) {
						t.Fatalf("round %d, answer %d: %v, %v", round, i, m, err)
					}
				}
			}
			s.farewell()
		})
	}
}

// A Read Response is taken only if it is what the oldest Read asked for, in
// STag, offset and length: it cannot be a Write in disguise.
//
// Claims: R-5.2.2-4 R-5.2.2-9 R-7.1-3 R-5.5-22 R-5.5-11
// Claims: R-5.2.2-5
func TestReadResponsesThatWereNotAskedForAreRefused(t *testing.T) {
	const off, n = 0x100, 100 // of the sink
	post := func(s *stage) {
		s.Post(verbs.SendWR{ID: 0, Op: verbs.OpRead, SGL: []verbs.SGE{s.exposed.SGE(off, n)}, Remote: verbs.Remote{STag: 0x11223344, TO: 0x1000}})
		s.Post(verbs.SendWR{ID: 1, Op: verbs.OpRead, SGL: []verbs.SGE{s.exposed.SGE(off+n, n)}, Remote: verbs.Remote{STag: 0x11223344, TO: 0x2000}})
	}
	flushed := []verbs.Status{verbs.Flushed, verbs.Flushed}
	ee := func(n int) []byte { return Fill(n, 0xEE) }
	bad := func(name string, layer, etype, code byte, event verbs.EventID, send func(s *stage, to uint64) [][]byte) offence {
		return offence{name: name, layer: layer, etype: etype, code: code, headers: iwarptest.DDPHeader, event: event, post: post, asks: 2, sends: flushed,
			send: func(s *stage) [][]byte { return send(s, s.exposedTO+off) }}
	}
	single := func(name string, layer, etype, code byte, event verbs.EventID, make func(s *stage, to uint64) []byte) offence {
		return bad(name, layer, etype, code, event, func(s *stage, to uint64) [][]byte { return [][]byte{make(s, to)} })
	}
	placed := func(o offence, n int) offence {
		o.placed = func(s *stage) { s.Expect(exposedOff+off, ee(n)...) }
		return o
	}
	done := func(o offence) offence {
		o = placed(o, n)
		o.sends = []verbs.Status{verbs.Success, verbs.Flushed}
		return o
	}
	unasked := offence{name: "nothing asked for", layer: 0, etype: 2, code: 6, headers: iwarptest.DDPHeader, event: verbs.EventOpcode,
		send: func(s *stage) [][]byte { return [][]byte{iwarptest.ReadResponse(s.exposedTag, s.exposedTO, ee(4)...)} }}
	empty := unasked
	empty.name, empty.send = "nothing asked for, empty", one(iwarptest.ReadResponse(0, 0))
	revoked := single("the sink was revoked", 1, 1, 0, verbs.EventProtectionSTag, func(s *stage, to uint64) []byte {
		return iwarptest.ReadResponse(s.exposedTag, to, ee(n)...)
	})
	send := revoked.send
	revoked.send = func(s *stage) [][]byte {
		s.must(s.exposed.Deallocate())
		return send(s)
	}
	tryAll(t, []offence{
		unasked, empty, revoked,
		single("another STag", 1, 1, 0, verbs.EventProtectionSTag, func(s *stage, to uint64) []byte { return iwarptest.ReadResponse(s.topTag, to, ee(n)...) }),
		single("an unknown STag", 1, 1, 0, verbs.EventProtectionSTag, func(s *stage, to uint64) []byte { return iwarptest.ReadResponse(s.unknownTag, to, ee(n)...) }),
		single("one octet before", 1, 1, 1, verbs.EventProtectionBounds, func(s *stage, to uint64) []byte { return iwarptest.ReadResponse(s.exposedTag, to-1, ee(n)...) }),
		single("one octet behind", 1, 1, 1, verbs.EventProtectionBounds, func(s *stage, to uint64) []byte { return iwarptest.ReadResponse(s.exposedTag, to+1, ee(n)...) }),
		single("the second Read's place", 1, 1, 1, verbs.EventProtectionBounds, func(s *stage, to uint64) []byte { return iwarptest.ReadResponse(s.exposedTag, to+n, ee(n)...) }),
		single("one octet too many", 1, 1, 1, verbs.EventProtectionBounds, func(s *stage, to uint64) []byte { return iwarptest.ReadResponse(s.exposedTag, to, ee(n+1)...) }),
		single("far too many", 1, 1, 1, verbs.EventProtectionBounds, func(s *stage, to uint64) []byte { return iwarptest.ReadResponse(s.exposedTag, to, ee(40000)...) }),
		single("one octet too few", 0, 2, 7, verbs.EventNoLastBit, func(s *stage, to uint64) []byte { return iwarptest.ReadResponse(s.exposedTag, to, ee(n-1)...) }),
		single("no octets", 0, 2, 7, verbs.EventNoLastBit, func(s *stage, to uint64) []byte { return iwarptest.ReadResponse(s.exposedTag, to) }),
		single("all octets without L", 0, 2, 7, verbs.EventNoLastBit, func(s *stage, to uint64) []byte {
			return iwarptest.ClearLast(iwarptest.ReadResponse(s.exposedTag, to, ee(n)...))
		}),
		placed(bad("a gap", 0, 2, 7, verbs.EventNoLastBit, func(s *stage, to uint64) [][]byte {
			return [][]byte{iwarptest.ClearLast(iwarptest.ReadResponse(s.exposedTag, to, ee(8)...)), iwarptest.ReadResponse(s.exposedTag, to+9, ee(n-9)...)}
		}), 8),
		placed(bad("a segment twice", 0, 2, 7, verbs.EventNoLastBit, func(s *stage, to uint64) [][]byte {
			return [][]byte{iwarptest.ClearLast(iwarptest.ReadResponse(s.exposedTag, to, ee(8)...)), iwarptest.ClearLast(iwarptest.ReadResponse(s.exposedTag, to, ee(8)...))}
		}), 8),
		placed(bad("too few in two segments", 0, 2, 7, verbs.EventNoLastBit, func(s *stage, to uint64) [][]byte {
			return [][]byte{iwarptest.ClearLast(iwarptest.ReadResponse(s.exposedTag, to, ee(8)...)), iwarptest.ReadResponse(s.exposedTag, to+8, ee(n-9)...)}
		}), 8),
		placed(bad("too many in two segments", 1, 1, 1, verbs.EventProtectionBounds, func(s *stage, to uint64) [][]byte {
			return [][]byte{iwarptest.ClearLast(iwarptest.ReadResponse(s.exposedTag, to, ee(8)...)), iwarptest.ReadResponse(s.exposedTag, to+8, ee(n-7)...)}
		}), 8),
		done(bad("the first answer twice", 1, 1, 1, verbs.EventProtectionBounds, func(s *stage, to uint64) [][]byte {
			return [][]byte{iwarptest.ReadResponse(s.exposedTag, to, ee(n)...), iwarptest.ReadResponse(s.exposedTag, to, Fill(n, 0xDD)...)}
		})),
		single("an Atomic Response instead", 1, 2, 2, verbs.EventIRRQMSNRange, func(s *stage, to uint64) []byte { return iwarptest.AtomicResponse(1, 0, 0) }),
	})
}
