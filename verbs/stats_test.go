package verbs_test

import (
	"errors"
	"maps"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// Everything that moves is counted where it moves: by the queue pair that asked
// for it, by the one that served it, and by their completion queues.
//
// Claims: V-10.4.1-1 V-10.4.1-2 S-6.4.4-1
func TestMessagesAreCountedOnBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newSide(t, reads), newSide(t, reads)
		x, y := iwarptest.Pipe()
		join(t, a.qp, b.qp, x, y, cm.Params{})
		b.receives(0, 5, 100)
		unsignaled := a.write(2, b, 0, 20000)
		unsignaled.Flags = 0
		solicited := a.send(5, 0, 7)
		solicited.Op = verbs.OpSendSE
		a.post(a.write(1, b, 0, 100), unsignaled, a.write(3, b, 0, 0), a.send(4, 0, 50), solicited,
			verbs.SendWR{ID: 6, Op: verbs.OpImmediate, Flags: verbs.Signaled},
			a.read(7, b, 0, 3000), a.read(8, b, 0, 0),
			a.atomic(9, verbs.OpFetchAdd, b, 0, 64, verbs.Atomic{Data: 1}),
			verbs.SendWR{ID: 10, Op: verbs.OpInvalidate, Invalidate: a.region(0, 8, verbs.LocalRead).STag(), Flags: verbs.Signaled | verbs.LocalFence},
		)
		quiesce()
		sent := verbs.QPStats{
			Sends: verbs.Traffic{Messages: 3, Octets: 57}, Writes: verbs.Traffic{Messages: 3, Octets: 20100},
			Reads: verbs.Traffic{Messages: 2, Octets: 3000}, Atomics: verbs.Traffic{Messages: 1, Octets: 8}, LocalWork: 1,
			Streams: 1,
		}
		received := verbs.QPStats{
			Received:   verbs.Traffic{Messages: 3, Octets: 65},
			PeerWrites: verbs.Traffic{Messages: 3, Octets: 20100}, EmptyWrites: 1,
			PeerReads: verbs.Traffic{Messages: 2, Octets: 3000}, PeerAtomics: 1, Streams: 1,
		}
		wantStats(t, "the sender", a.qp.Stats(), sent)
		wantStats(t, "the receiver", b.qp.Stats(), received)
		wantStats(t, "the send CQ", a.sendCQ.Stats(), verbs.CQStats{Succeeded: 9, MostUsed: 9})
		wantStats(t, "the receive CQ", b.recvCQ.Stats(), verbs.CQStats{Succeeded: 3, MostUsed: 3})

		// Another stream is counted on, and what is destroyed is not forgotten.
		take(t, a.sendCQ, 9)
		check(t, a.qp.Close(t.Context()))
		reach(t, b.qp, verbs.Idle)
		x, y = iwarptest.Pipe()
		join(t, a.qp, b.qp, x, y, cm.Params{})
		a.post(a.write(11, b, 0, 5))
		quiesce()
		sent.Writes.Messages, sent.Writes.Octets, sent.Streams, sent.Closed = 4, 20105, 2, 1
		received.PeerWrites.Messages, received.PeerWrites.Octets, received.Streams, received.Closed = 4, 20105, 2, 1
		received.Flushed = 2 // receives that were left when the first was closed
		wantStats(t, "the sender", a.qp.Stats(), sent)
		wantStats(t, "the receiver", b.qp.Stats(), received)
		other := a.flusher(verbs.QPConfig{})
		fill(t, other, 0, 3)
		check(t, a.qp.Destroy())
		sent.Aborted, sent.Flushed = 1, 3
		s := a.rnic.Stats()
		wantStats(t, "the RNIC", s.QPs, sent)
		wantStats(t, "all CQs", s.CQs, verbs.CQStats{Succeeded: 10, Flushed: 3, MostUsed: 9})
		check(t, a.rnic.Close())
		s.States = map[verbs.State]int{} // no queue pair is left
		wantStats(t, "the RNIC that is closed", a.rnic.Stats(), s)
	})
}

func wantStats(t *testing.T, whose string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n%+v, expected\n%+v", whose, got, want)
	}
}

// How a stream ended, and what was said about it, is counted at both ends.
func TestTheEndsOfStreamsAreCounted(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(t *testing.T, a, b *side)
		a, b verbs.QPStats
	}{
		{"gracefully", func(t *testing.T, a, _ *side) { check(t, a.qp.Close(t.Context())) },
			verbs.QPStats{Closed: 1}, verbs.QPStats{Closed: 1}},
		{"by a Terminate of the consumer's", func(t *testing.T, a, _ *side) { check(t, a.qp.Terminate()) },
			verbs.QPStats{Terminated: 1, TerminatesSent: 1}, verbs.QPStats{TerminatedByPeer: 1, TerminatesReceived: 1}},
		{"by a request that failed", func(_ *testing.T, a, _ *side) {
			wr := a.send(1, 0, 8)
			wr.SGL[0].STag++
			a.post(wr, a.send(2, 0, 8))
		}, verbs.QPStats{Failed: 1, Flushed: 1, Terminated: 1, TerminatesSent: 1}, verbs.QPStats{TerminatedByPeer: 1, TerminatesReceived: 1}},
		{"by a message that is too long", func(_ *testing.T, a, b *side) {
			b.receives(1, 2, 4)
			a.post(a.send(1, 0, 8))
		}, verbs.QPStats{Sends: verbs.Traffic{Messages: 1, Octets: 8}, TerminatedByPeer: 1, TerminatesReceived: 1},
			verbs.QPStats{Failed: 1, Flushed: 1, Terminated: 1, TerminatesSent: 1}},
		{"by an abort", func(_ *testing.T, a, _ *side) { a.qp.Abort() }, verbs.QPStats{Aborted: 1}, verbs.QPStats{Lost: 1}},
		{"by the end of the RNIC", func(t *testing.T, a, _ *side) { check(t, a.rnic.Fail(nil)) },
			verbs.QPStats{Terminated: 1, TerminatesSent: 1}, verbs.QPStats{TerminatedByPeer: 1, TerminatesReceived: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			overWires(t, func(t *testing.T, w wire) {
				a, b := linked(t, w, reads, reads)
				tt.end(t, a, b)
				tt.a.Streams, tt.b.Streams = 1, 1
				ends := []struct {
					s    *side
					want verbs.QPStats
				}{{a, tt.a}, {b, tt.b}}
				for _, e := range ends {
					if _, err := e.s.qp.WaitState(t.Context(), verbs.Idle, verbs.Error); err != nil {
						t.Fatal(err)
					}
				}
				for _, e := range ends {
					check(t, e.s.rnic.Close()) // nothing of the stream is left then
					wantStats(t, "the queue pair", e.s.qp.Stats(), e.want)
				}
			})
		})
	}
}

// What is refused is counted by the reason, and what happens by the event.
func TestRefusalsAndEventsAreCounted(t *testing.T) {
	s := newSideOf(t, verbs.Config{Limits: verbs.Limits{PDs: 2, CQs: 3}}, verbs.QPConfig{SendDepth: 2, RecvDepth: 3})
	for i := range 5 {
		if err := s.qp.PostSend(verbs.SendWR{Op: verbs.OpSend}); (err != nil) != (i >= 2) {
			t.Errorf("post %d: %v", i, err)
		}
		if err := s.qp.PostRecv(verbs.RecvWR{}); (err != nil) != (i >= 3) {
			t.Errorf("receive %d: %v", i, err)
		}
	}
	wantStats(t, "the queue pair", s.qp.Stats(), verbs.QPStats{FullSends: 3, FullRecvs: 2})
	must(s.rnic.AllocPD())(t)
	for range 4 {
		_, err := s.rnic.AllocPD()
		wantError(t, err, verbs.ErrResources)
	}
	cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 2}))(t)
	if _, err := s.rnic.CreateCQ(verbs.CQConfig{Entries: 2}); !errors.Is(err, verbs.ErrResources) {
		t.Errorf("a CQ too many: %v", err)
	}
	qp := s.flusher(verbs.QPConfig{SendCQ: cq})
	fill(t, qp, 0, 5)
	s.wantEvents(verbs.EventCQOverflow)
	take(t, cq, 2)
	fill(t, qp, 0, 3)
	s.wantEvents(verbs.EventCQOverflow, verbs.EventCQOverflow)
	wantStats(t, "the CQ", cq.Stats(), verbs.CQStats{Flushed: 8, Lost: 4, Overflows: 2, MostUsed: 2})
	check(t, qp.Destroy())
	check(t, cq.Destroy())
	wantStats(t, "the RNIC", s.rnic.Stats(), verbs.RNICStats{
		QPs:    verbs.QPStats{FullSends: 3, FullRecvs: 2, Flushed: 8},
		States: map[verbs.State]int{verbs.Idle: 1},
		CQs:    verbs.CQStats{Flushed: 8, Lost: 4, Overflows: 2, MostUsed: 2},
		Events: map[verbs.EventID]uint64{verbs.EventCQOverflow: 2},
		Limits: map[string]uint64{"PDs": 4, "CQs": 1},
	})
}

// An administrator of the RNIC finds the queue pairs, and ends the stream of one:
// the others go on.
//
// Claims: V-10.4.1-1 V-10.4.1-2 S-6.4.4-1
func TestOneQueuePairIsFoundAndItsStreamEnded(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, reads, reads)
		bad := a.newQP(verbs.QPConfig{})
		w.connect(t, bad, b.newQP(verbs.QPConfig{}), cm.Params{})
		if qps := a.rnic.QPs(); len(qps) != 2 {
			t.Errorf("%d queue pairs are there, expected 2", len(qps))
		}
		found := a.rnic.QP(bad.Num())
		if found != bad || a.rnic.QP(0) != nil || a.rnic.QP(bad.Num()+1) != nil {
			t.Fatalf("found %p, expected %p", found, bad)
		}
		found.Abort()
		reach(t, bad, verbs.Error)
		a.post(a.write(1, b, 0, 10))
		wantDone(t, a.sendCQ, done{1, verbs.Success})
		check(t, bad.Destroy())
		if qps := a.rnic.QPs(); a.rnic.QP(bad.Num()) != nil || len(qps) != 1 || qps[0] != a.qp {
			t.Errorf("%d queue pairs are left", len(qps))
		}
	})
}

// An RNIC counts what its streams have carried, live or over, and by which Terminate
// messages they ended.
func TestAnRNICCountsItsStreams(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, reads, reads)
		b.receives(1, 2, 4)
		live := a.rnic.Stats()
		if len(live.States) != 1 || live.States[verbs.RTS] != 1 {
			t.Errorf("the states are %v", live.States)
		}
		a.post(a.send(1, 0, 8)) // too long for the receive
		reach(t, a.qp, verbs.Error)
		reach(t, b.qp, verbs.Error)
		tooLong := map[verbs.TerminateCode]uint64{{Layer: 1, EType: 2, Code: 5}: 1}
		sent, received := b.rnic.Stats(), a.rnic.Stats()
		if !maps.Equal(sent.TerminatesSent, tooLong) || len(sent.TerminatesReceived) > 0 {
			t.Errorf("the receiver counts %v sent, %v received", sent.TerminatesSent, sent.TerminatesReceived)
		}
		if !maps.Equal(received.TerminatesReceived, tooLong) || len(received.TerminatesSent) > 0 {
			t.Errorf("the sender counts %v sent, %v received", received.TerminatesSent, received.TerminatesReceived)
		}
		if w.name != "records" && (received.Wire.SegmentsOut == 0 || received.Wire.OctetsOut < 8 || sent.Wire.SegmentsIn == 0) {
			t.Errorf("the sender counts %+v on the wire, the receiver %+v", received.Wire, sent.Wire)
		}
	})
}
