// RDMA Reads (RFC 5040 §5.2): how they are asked for and served.

package rdmap

import "github.com/weft-rdma/weft/ddp"

// startRead asks the peer for a Read.
func (o *outbound) startRead(op *Operation) {
	r := ReadRequest{
		SinkSTag: op.SinkSTag, SinkTO: op.SinkTO, Size: op.Length,
		SourceSTag: op.RemoteSTag, SourceTO: op.RemoteTO,
	}
	o.ask(r.Append(o.msg.fixed[:0]), &pending{ticket: op.Ticket, sinkSTag: op.SinkSTag, sinkTO: op.SinkTO, length: op.Length})
}

// wait makes p what waits for the response to r, which has that MSN.
func (r *ReadRequest) wait(p *pending, ticket uint64, msn uint32) {
	p.ticket, p.opcode, p.rtr, p.msn = ticket, OpReadRequest, false, msn
	p.sinkSTag, p.sinkTO, p.length = r.SinkSTag, r.SinkTO, r.Size
}

var reads = service{
	parse: func(in *inbound, r *request, payload []byte) error {
		if err := r.read.Parse(payload); err != nil {
			return err
		}
		// A Read of no octets is answered whatever it names (RFC 5040 §5.2.1).
		if r.read.Size > 0 {
			f := in.s.ulp.CheckSource(r.read.SourceSTag, r.read.SourceTO, r.read.Size)
			if f == ddp.FaultDisabled {
				return errReadDisabled()
			}
			if f != ddp.NoFault {
				return r.readFault(f)
			}
		}
		return nil
	},
	answer: func(o *outbound, r *request) bool {
		o.msg.opcode = OpReadResponse
		o.ddp.StartTagged(Control(o.s.rv, OpReadResponse), r.read.SinkSTag, r.read.SinkTO, r.read.Size)
		return true
	},
	refused: (*request).readFault,
	count: func(f *finished, r *request) {
		f.reads++
		f.octets += uint64(r.read.Size)
	},
}

// readFault is the error of a Read Request whose source was refused. The Terminate
// message has the request with what was left of it (RFC 5040 §4.8).
func (r *request) readFault(f ddp.Fault) error {
	left := r.read.Advanced(r.sent)
	err := NewProtectionError(f, "%s: %s", left.words(), f.Reason())
	return &offence{err: err, header: r.header[:], length: r.length, read: &left}
}
