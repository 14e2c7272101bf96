// This file is what rdmap.ULP may offer besides, for a queue pair: runs of short work requests, and
// memory for messages that are taken together.

package verbs

import (
	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/rdmap"
)

var (
	_ rdmap.RunQueue    = ulp{}
	_ rdmap.RunSources  = ulp{}
	_ rdmap.RunTargets  = ulp{}
	_ rdmap.RunReceives = ulp{}
)

// --- rdmap.RunQueue

// shortOps are the operations that go in runs, by the opcodes of their messages.
var shortOps = [...]Op{rdmap.OpWrite: OpWrite, rdmap.OpSend: OpSend, rdmap.OpSendSE: OpSendSE}

// ShortRun finds short Writes or Sends at the front of the queue, and their memory.
func (u ulp) ShortRun(opcode rdmap.Opcode, r *ddp.Run, most int) (ticket uint64) {
	s, op := &u.sq, shortOps[opcode]
	ticket, ring, count := s.unstarted(ddp.RunLength)
	for n := range count {
		w := ring.at(ticket + n)
		if !w.short(op, most) {
			break
		}
		e := &w.wr.SGL[0]
		if n == 0 {
			pieces, f := u.out.Resolve(r.Payloads[:0], uint32(e.STag), e.TO, w.length, LocalRead)
			if f != ddp.NoFault || len(pieces) != 1 {
				break // Gather says what is wrong with it
			}
		} else if r.Payloads[n] = u.out.AnotherFrame(uint32(e.STag), e.TO, w.length, LocalRead); r.Payloads[n] == nil {
			break
		}
		r.Targets[n] = ddp.Target{STag: uint32(w.wr.Remote.STag), TO: w.wr.Remote.TO} // of no meaning for a Send
		r.N++
	}
	if r.N > 0 {
		s.gathered = ticket + uint64(r.N)
	}
	return ticket
}

// short reports that a work request is op, a Send or Write, of 1 to most octets in one element, that
// is to be started at once and passes precheck.
func (w *sendWQE) short(op Op, most int) bool {
	return w.wr.Op == op && w.wr.Flags&ReadFence == 0 && len(w.wr.SGL) == 1 && w.length-1 < uint64(most) &&
		(op != OpWrite || w.wr.Remote.STag != 0)
}

// Reads finds RDMA Reads at the front of the queue that are to be started at once and pass precheck.
func (u ulp) Reads(reads []rdmap.ReadRequest) (ticket uint64, n int) {
	ticket, ring, count := u.sq.unstarted(len(reads))
	for n < int(count) {
		w := ring.at(ticket + uint64(n))
		wr := &w.wr
		if wr.Op != OpRead || wr.Flags&ReadFence != 0 || wr.Remote.STag == 0 || wr.SGL[0].STag == 0 {
			break
		}
		reads[n] = rdmap.ReadRequest{
			SinkSTag: uint32(wr.SGL[0].STag), SinkTO: wr.SGL[0].TO, Size: uint32(w.length),
			SourceSTag: uint32(wr.Remote.STag), SourceTO: wr.Remote.TO,
		}
		n++
	}
	return ticket, n
}

// Took takes the work requests that ShortRun or Reads has found off the queue.
func (u ulp) Took(ticket uint64) { u.sq.next.Store(ticket) }

// Waiting reports that a work request is to be started.
func (u ulp) Waiting() bool { return u.sq.next.Load() != u.sq.tail.Load() }

// --- rdmap.RunReceives

// AnotherReceive finds the memory of a receive for a short message.
func (u ulp) AnotherReceive(i, n int) []byte {
	w := u.rq.another(i)
	if w == nil || len(w.sgl) == 0 || uint64(w.sgl[0].Length) < uint64(n) || w.length > maxMessage {
		return nil
	}
	e := &w.sgl[0]
	return u.in.Another(uint32(e.STag), e.TO, uint64(n), LocalWrite)
}

// DeliveredRun completes receives.
func (u ulp) DeliveredRun(op rdmap.Opcode, lengths []uint32) {
	u.sq.tell()
	u.rq.completeRun(lengths, op.Solicited())
}

// --- rdmap.RunTargets and RunSources

// AnotherTarget: WriteTarget for the same STag.
func (u ulp) AnotherTarget(stag uint32, to uint64, n int) []byte {
	if !u.inbound.has(RemoteWrite) {
		return nil
	}
	return u.in.Another(stag, to, uint64(n), RemoteWrite)
}

// AnotherSink: ReadSink for the same STag, of a Read after which nothing is left to be done.
func (u ulp) AnotherSink(ticket uint64, stag uint32, to uint64, n int) []byte {
	if !u.inbound.has(responses) || u.sq.at(ticket).wr.Op != OpRead {
		return nil
	}
	if u.cfg.ReadSinkLocalWrite { // a window has none of that: it is looked up by itself
		return u.in.Another(stag, to, uint64(n), LocalWrite)
	}
	return u.in.Another(stag, to, uint64(n), RemoteWrite)
}

// Answered completes Reads.
func (u ulp) Answered(ticket uint64) { u.sq.hear(ticket) }

// AnotherSource: Source for the same STag.
func (u ulp) AnotherSource(stag uint32, to uint64, n int) []byte {
	return u.out.AnotherFrame(stag, to, uint64(n), RemoteRead)
}
