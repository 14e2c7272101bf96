package rdmap

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/mpa"
)

// Terminate goes out at the next boundary of a segment, before all that waits,
// and nothing follows it.
//
// Claims: R-5.4-1 R-5.4-2 R-5.4-3 R-5.4-8 R-7-3 X-8.1-1 R-7.1-2 R-7.1-5 V-6.4-5
func TestTerminateOvertakesAllThatWaits(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes, l.room = 0, 1 })
	r.region(0x33, 8, 1, '.')
	r.send(writeOf(300), sendOf(1))
	r.take(asks(1, 1))
	r.Terminate(nil)
	r.stuck(func() {})
	if m := r.terminated(); m.Layer != LayerRDMA || m.EType != LocalCatastrophic || m.M || m.R || m.DDPHeader != nil {
		t.Errorf("Terminate %+v, want a local catastrophic error without headers", m)
	}
	r.send(sendOf(1))
	r.Close()
	r.Kick()
	want(t, "sent", r.sent(), "RDMA Write 0x22:0x1000 114...", "Terminate 2#1+0 4.")
	want(t, "told", r.ulp.told())
	want(t, "shut", r.line.shut, "CloseWrite")
	if len(r.ended) != 1 || r.ended[0] != nil {
		t.Errorf("ended with %v, want once with nil", r.ended)
	}
	// Nor is anything taken any more.
	r.receive(0)
	if err := r.feed(whole(OpSend, 1, nil)); err != errEnded {
		t.Errorf("the reception ended with %v, want %v", err, errEnded)
	}
	want(t, "told", r.ulp.told())
}

// Claims: R-7-3
func TestNothingIsTakenOnceThereIsATerminate(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes, l.room = 0, 1 })
	r.receive(0)
	r.Terminate(nil) // which cannot leave yet
	if err := r.feed(whole(OpSend, 1, nil)); err != errEnded {
		t.Errorf("the reception ended with %v, want %v", err, errEnded)
	}
	want(t, "told", r.ulp.told())
}

// Claims: R-7.1-6
func TestFirstErrorWins(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes, l.room = 0, 1 })
	r.send(writeOf(300))
	first := r.Terminate(NewError(RemoteOperation, CodeOpcode, "first"))
	second := r.Terminate(NewError(RemoteOperation, CodeVersion, "second"))
	if first != second || first.Remote {
		t.Errorf("%v, then %v", first, second)
	}
	r.stuck(func() { r.Terminate(io.EOF) })
	if m := r.terminated(); m.Code != CodeOpcode {
		t.Errorf("code %#x, want %#x", m.Code, CodeOpcode)
	}
}

// The codes of a Terminate message are those that the error has from its layer.
//
// Claims: R-7.1-2
func TestTerminateSaysWhatTheErrorSays(t *testing.T) {
	unfit := func() error { return errVersion(2, 1) }
	for _, c := range []struct {
		name string
		err  error
		code string
	}{
		{"none", nil, "0/0/00"},
		{"the end of the stream", io.EOF, "0/2/07"},
		{"the end, wrapped", fmt.Errorf("reading: %w", io.EOF), "0/2/07"},
		{"without a code", errLocal, "0/2/07"},
		{"RDMAP's", unfit(), "0/2/05"},
		{"RDMAP's, wrapped", fmt.Errorf("message: %w", unfit()), "0/2/05"},
		{"in the middle of a message", ErrUnfinished, "0/2/07"},
		{"DDP's", errTooManyRequests(1), "1/2/03"},
		{"MPA's", &mpa.Error{Code: mpa.CodeCRC}, "2/0/02"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			told := r.Terminate(c.err)
			if got := codeOf(t, told); got != c.code {
				t.Errorf("the error says %s, want %s", got, c.code)
			}
			if eof := errors.Is(c.err, io.EOF); eof && !strings.Contains(told.Error(), "closed the stream with work outstanding") {
				t.Errorf("the error says %q", told)
			}
			r.Kick()
			m := r.terminated()
			if got := code(m.Layer, m.EType, m.Code); got != c.code || m.M || m.R || m.DDPHeader != nil {
				t.Errorf("the message says %+v, want %s without headers", m, c.code)
			}
		})
	}
}

// Errors of the layers below are returned unchanged.
func TestErrorOfTheLLPIsReturnedAsItIs(t *testing.T) {
	broken := &mpa.Error{Code: mpa.CodeCRC}
	r := newRig(t)
	r.receive(0)
	r.line.end = broken
	if err := r.feed(whole(OpSend, 1, nil)); err != broken {
		t.Errorf("the reception ended with %#v, want %#v", err, broken)
	}
}

// A ULP may fail when it is asked for the next operation. The Terminate is sent, whatever
// else there is to send.
func TestTerminateFromWithinTheSendQueueIsSent(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.fenced = true })
	r.region(0x33, 8, 111, '.')
	r.take(asks(1, 1), asks(2, 111)) // which go one by one
	r.ulp.next = func() { r.Terminate(nil) }
	r.line.fenced = false
	r.Kick()
	want(t, "sent", r.sent(), "RDMA Read Response 0x77:0x700 1.", "Terminate 2#1+0 4.")

	r = newRig(t)
	r.ulp.next = func() { r.ulp.next = nil; r.Terminate(nil); r.Kick() }
	r.Kick()
	want(t, "sent with nothing else to send", r.sent(), "Terminate 2#1+0 4.")
}

// A Terminate that may not be sent yet is not waited for, and the stream breaks,
// lest the peer take the end for a graceful one.
func TestTerminateBeforeTheFirstMessageIsNotWaitedFor(t *testing.T) {
	for name, why := range map[string]error{
		"of its own accord": nil, "a damaged FPDU": &mpa.Error{Code: mpa.CodeCRC}, "a violation": errUnasked(OpSend),
		"the peer's end with work outstanding": io.EOF, "the peer's end within a message": ErrUnfinished,
	} {
		var end error
		r := newRig(t, responder, func(_ *Config, l *line) { l.fenced = true }, func(c *Config, _ *line) { c.Ended = func(err error) { end = err } })
		r.Terminate(why)
		r.Kick()
		want(t, name+": sent", r.sent())
		want(t, name+": shut", r.line.shut)
		if end != errUnreported {
			t.Errorf("%s: the outgoing half ended with %v, want %v", name, end, errUnreported)
		}
	}
}

// The peer's Terminate ends the reception with all that it says, whatever is
// posted, and is never answered.
//
// Claims: R-5.4-4 R-5.4-5
func TestPeersTerminateIsDeliveredAndNotAnswered(t *testing.T) {
	told := NewTerminate(LayerDDP, ddp.TaggedBuffer, ddp.CodeBounds, writeHeader.Append(nil), 100, nil)
	r := newRig(t)
	r.send(readOf(1))
	r.sent()
	// A message of ours is under way, one of the peer's is open.
	r.receive(8)
	err := r.feed(untagged(OpSend, 1, 0, false, nil), whole(OpTerminate, 1, told.Append(nil)))
	var said *TerminateError
	if !errors.As(err, &said) || !said.Remote || codeOf(t, err) != "1/1/01" || said.SegmentLength != 100 ||
		!bytes.Equal(said.DDPHeader, writeHeader.Append(nil)) {
		t.Errorf("the reception ended with %v: %+v", err, said)
	}
	r.Abandon()
	r.Kick()
	want(t, "sent", r.sent())
	want(t, "told", r.ulp.told())
	want(t, "shut", r.line.shut, "CloseWrite")
}

// One cut into segments is put together, one too long is refused.
func TestTerminateOfAnyLengthIsTaken(t *testing.T) {
	r := newRig(t)
	err := r.feed(untagged(OpTerminate, 1, 0, false, []byte{0x02, 0x06}), untagged(OpTerminate, 1, 2, true, []byte{0, 0}))
	if got := codeOf(t, err); got != "0/2/06" {
		t.Errorf("code %s, want 0/2/06", got)
	}
	if got := codeOf(t, newRig(t).feed(whole(OpTerminate, 1, nil))); got != "0/2/FF" {
		t.Errorf("empty: code %s, want 0/2/FF", got)
	}
	if got := codeOf(t, newRig(t).feed(whole(OpTerminate, 1, octets(terminateRoom+1)))); got != "1/2/05" {
		t.Errorf("too long: code %s, want 1/2/05", got)
	}
}

// A failed start-up is reported by one Terminate message, octet for octet, and the
// connection is closed when the peer has had time to read it.
//
// Claims: ME-9.3-2
func TestRefuseSendsOneTerminateAndCloses(t *testing.T) {
	for _, c := range []struct {
		code mpa.Code
		wire string
	}{
		{mpa.CodeCatastrophic, "4147 00000000 00000002 00000001 00000000 20050000"},
		{mpa.CodeInsufficientIRD, "4147 00000000 00000002 00000001 00000000 20060000"},
		{mpa.CodeNoRTR, "4147 00000000 00000002 00000001 00000000 20070000"},
	} {
		l := newLine(t)
		l.guard = &hold{}
		err := Refuse(l, &mpa.Error{Code: c.code})
		if want := code(2, 0, uint8(c.code)); codeOf(t, err) != want {
			t.Errorf("%v, want code %s", err, want)
		}
		if len(l.written) != 1 || !bytes.Equal(append(l.written[0].header, l.written[0].payload...), unhex(t, c.wire)) {
			t.Errorf("sent %+v, want % s", l.written, c.wire)
		}
		want(t, "shut", l.shut, "CloseWrite", "Drain", "Close")
	}
}

// The peer may be in Full Operation: without the message the end must not look
// graceful.
func TestRefuseResetsWhereNothingCanBeWritten(t *testing.T) {
	l := newLine(t)
	l.broken = errPause
	Refuse(l, nil)
	want(t, "shut", l.shut, "Reset")
	l = newLine(t)
	l.guard, l.closed = &hold{}, errPause
	Refuse(l, nil)
	want(t, "shut", l.shut, "CloseWrite", "Reset")
}
