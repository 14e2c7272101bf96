// The end of a stream by a Terminate message (RFC 5040 §5.4, §7.1): the first error is
// the one that is reported, and nothing is sent after it.

package rdmap

import (
	"errors"
	"io"

	"github.com/weft-rdma/weft/ddp"
)

// coded is implemented by the errors of every layer: the numbers that name them in a
// Terminate message. RDMAP copies those of the layers below.
type coded interface {
	TerminateCode() (layer, etype, code uint8)
}

// An offence is an error together with the segment of the peer that was at fault.
type offence struct {
	err    error
	header []byte // its DDP header
	length int    // of its segment
	read   *ReadRequest
}

func (o *offence) Error() string { return o.err.Error() }
func (o *offence) Unwrap() error { return o.err }

// Header is the DDP header of the segment at fault, nil if it had none.
func (o *offence) Header() []byte { return o.header }

// offence adds the segment at fault to what ended the reception, if a segment
// was at fault.
func (in *inbound) offence(err error) error {
	var o *offence
	var t *TerminateError
	var c coded
	switch {
	case errors.As(err, &o), errors.As(err, &t), !errors.As(err, &c):
		return err
	}
	if layer, _, _ := c.TerminateCode(); layer == LayerLLP {
		return err
	}
	header, length := in.receiver.Offending()
	return &offence{err: err, header: header, length: length}
}

// remoteTerminate is what the peer said when it ended the stream.
func remoteTerminate(payload []byte) error { return NewTerminateError(payload) }

// errCatastrophic ends a stream for which no code fits better.
func errCatastrophic(err error) error {
	return NewError(RemoteOperation, CodeStream, "%v", err)
}

// An outgoingTerminate is the payload of the Terminate message to be sent.
type outgoingTerminate struct {
	payload []byte
	err     *TerminateError
}

// Terminate ends the stream with a Terminate message that reports err, after
// the last segment already begun: nothing else is sent. err may be what Reader
// returned. A second call changes nothing: the first error wins
// (RFC 5040 §7.1). It returns the error that the message carries. It takes
// effect with the next Kick.
//
// io.EOF and errors without a code are reported as a catastrophic error of the
// stream (0/2/07), nil as a local catastrophic error (0/0/00).
func (s *Stream) Terminate(err error) *TerminateError {
	t := s.newTerminate(err)
	if !s.term.CompareAndSwap(nil, t) {
		return s.term.Load().err
	}
	return t.err
}

func (s *Stream) newTerminate(err error) *outgoingTerminate {
	if errors.Is(err, io.EOF) {
		err = errCatastrophic(errors.New("the peer closed the stream with work outstanding"))
	}
	var o offence
	if p := (*offence)(nil); errors.As(err, &p) {
		o = *p
	}
	layer, etype, code := LayerRDMA, LocalCatastrophic, uint8(0)
	var c coded
	switch {
	case errors.As(err, &c):
		layer, etype, code = c.TerminateCode()
	case err != nil:
		etype, code = RemoteOperation, CodeStream
	}
	msg := NewTerminate(layer, etype, code, append([]byte(nil), o.header...), o.length, o.read)
	payload := msg.Append(make([]byte, 0, MaxTerminateLen))
	e := &TerminateError{
		Layer: msg.Layer, EType: msg.EType, Code: msg.Code, Err: err, Raw: payload,
		SegmentLength: msg.SegmentLength, DDPHeader: msg.DDPHeader,
	}
	if msg.R {
		e.ReadRequest = &msg.ReadRequest
	}
	return &outgoingTerminate{payload: payload, err: e}
}

// startTerminate starts the stream's last message. A message that was being
// sent stays without its last segment: it is never delivered.
func (o *outbound) startTerminate(t *outgoingTerminate) {
	m := &o.msg
	m.kind, m.opcode, m.body = kindTerminate, OpTerminate, t.payload
	// One that was dropped together with revoked segments before it has not been
	// sent.
	o.ddp.StartOnly(ControlUntagged(o.s.rv, OpTerminate, 0), QueueTerminate, uint32(len(t.payload)))
}

// Refuse ends a stream that has not begun, because of a failed start-up, with a
// Terminate message that reports err (RFC 6581 §8), and closes llp. If the message
// cannot be sent, llp is reset. Refuse waits for the peer to close: the caller limits
// the time.
func Refuse(llp ddp.LLP, err error) *TerminateError {
	s := &Stream{rv: llp.Version()}
	t := s.newTerminate(err)
	out := ddp.NewSender(llp, nil)
	out.StartOnly(ControlUntagged(s.rv, OpTerminate, 0), QueueTerminate, uint32(len(t.payload)))
	out.Next(0)
	out.Append([][]byte{t.payload})
	if drained, err := out.Flush(true); err != nil || !drained || out.CloseWrite() != nil {
		_ = llp.Reset()
		return t.err
	}
	// Closing with unread input would reset the connection and could destroy the
	// message on its way.
	_ = llp.Drain()
	_ = llp.Close()
	return t.err
}
