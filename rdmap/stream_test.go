package rdmap

import (
	"errors"
	"sync"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
)

// Close sends the rest of the message in progress, answers the peer, and then ends the
// sending half. It starts no other message.
func TestCloseSendsWhatIsUnderWay(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes, l.room = 0, 1 })
	r.region(0x33, 8, 1, '.')
	r.send(sendOf(200))
	r.take(asks(1, 1))
	r.post(sendOf(1))
	r.Close()
	r.Kick()
	if len(r.ended) > 0 {
		t.Fatal("ended with a message under way")
	}
	r.stuck(func() {})
	want(t, "sent", r.sent(), "Send 0#1+0 110...", "Send 0#1+110 90.", "RDMA Read Response 0x77:0x700 1.")
	want(t, "told", r.ulp.told(), "sent 1")
	want(t, "shut", r.line.shut, "CloseWrite")
	r.Kick()
	if len(r.ended) != 1 || r.ended[0] != nil {
		t.Errorf("ended with %v, want once with nil", r.ended)
	}
}

// After Close a message of the peer is an error, except a Terminate.
func TestMessageAfterCloseIsAnError(t *testing.T) {
	r := newRig(t)
	r.receive(0)
	r.Close()
	r.Kick()
	if got := codeOf(t, r.feed(whole(OpSend, 1, nil))); got != "0/2/07" {
		t.Errorf("code %s, want 0/2/07", got)
	}
	want(t, "told", r.ulp.told())

	r = newRig(t)
	r.Close()
	var said *TerminateError
	if err := r.feed(whole(OpTerminate, 1, []byte{0x11, 0, 0, 0})); !errors.As(err, &said) || !said.Remote {
		t.Errorf("the reception ended with %v, want what the peer said", err)
	}
}

// An error of the transport's close is reported.
func TestCloseThatFailsIsTold(t *testing.T) {
	broken := errors.New("broken")
	r := newRig(t, func(_ *Config, l *line) { l.closed = broken })
	r.Close()
	r.Kick()
	if len(r.ended) != 1 || r.ended[0] != broken {
		t.Errorf("ended with %v, want %v", r.ended, broken)
	}
}

// Abandon ends at the next boundary: segments already handed over leave, others do not,
// and no Terminate follows.
func TestAbandonSendsNothingMore(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes, l.room = 0, 1 })
	r.region(0x33, 8, 1, '.')
	r.send(writeOf(300))
	r.take(asks(1, 1))
	r.Abandon()
	r.Kick()
	r.stuck(func() {})
	want(t, "sent", r.sent(), "RDMA Write 0x22:0x1000 114...")
	want(t, "told", r.ulp.told())
	want(t, "shut", r.line.shut, "CloseWrite")
}

// PeerClosed is called once, when nothing is on its way out.
func TestPeerClosedWaitsForTheAnswers(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes, l.room = 0, 1 })
	r.region(0x33, 8, 200, '.')
	r.take(asks(1, 200))
	r.PeerClosed()
	r.Kick()
	if r.asked != 0 {
		t.Error("told with an answer on its way")
	}
	r.stuck(func() {
		if r.asked != 0 {
			t.Error("told with an answer on its way")
		}
	})
	r.Kick()
	if r.asked != 1 || len(r.line.written) != 2 || len(r.ended) > 0 {
		t.Errorf("told %d times, %d segments sent, ended %v; want 1, 2, not", r.asked, len(r.line.written), r.ended)
	}
	r.Close()
	r.Kick()
	want(t, "shut", r.line.shut, "CloseWrite")
}

// A close that is requested while the owner looks for something to send takes effect after
// the owner has looked again, because something may have been posted before it.
func TestCloseWhileTheOwnerLooksComesAfterWhatWasPosted(t *testing.T) {
	for name, ask := range map[string]func(*rig){
		"Close":      func(r *rig) { r.Close() },
		"PeerClosed": func(r *rig) { r.PeerClosed() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.region(0x33, 8, 1, '.')
			r.ulp.next = func() {
				r.ulp.next = nil
				q := request{opcode: OpReadRequest, read: ReadRequest{Size: 1, SourceSTag: 0x33, SourceTO: 8}}
				r.requests.push(&q)
				ask(r)
				r.Kick()
			}
			r.line.flush = func() {
				if r.asked > 0 || len(r.line.shut) > 0 {
					t.Error("it was acted on too early")
				}
			}
			r.Kick()
			if len(r.out.handoff) > 0 {
				r.writer()
			}
			want(t, "sent", r.sent(), "RDMA Read Response 0x0:0x0 1.")
			if r.asked+len(r.line.shut) != 1 {
				t.Errorf("asked %d times, shut %v; want one of them", r.asked, r.line.shut)
			}
		})
	}
}

func TestStopEndsAllSending(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.takes = 0 })
	r.send(sendOf(1))
	entered, leave := make(chan struct{}), make(chan struct{})
	r.line.wait = func() {
		close(entered)
		<-leave
		r.line.broken = errPause // as the connection was reset
	}
	var writer, stop sync.WaitGroup
	writer.Go(r.Writer)
	nettest.Await(t, entered)
	stop.Go(r.Stop) // waits for Writer to be out of the outgoing half
	close(leave)
	nettest.AwaitGroup(t, &stop)
	nettest.AwaitGroup(t, &writer)
	r.Stop()
	r.line.broken = nil
	r.send(sendOf(1))
	want(t, "sent", r.sent())
	if len(r.ended) > 1 {
		t.Errorf("ended %d times", len(r.ended))
	}
}

// Stop may come while somebody sends: no further batch is begun.
func TestOwnerHeedsStop(t *testing.T) {
	r := newRig(t, func(_ *Config, l *line) { l.room = 1 })
	var stop sync.WaitGroup
	r.line.flush = func() {
		r.line.flush = nil
		stop.Go(r.Stop)
		<-r.done // Stop goes on when the owner has left
	}
	r.send(sendOf(1), sendOf(1))
	nettest.AwaitGroup(t, &stop)
	want(t, "sent", r.sent(), "Send 0#1+0 1.")
	if len(r.ended) != 1 || r.ended[0] != errStopped {
		t.Errorf("ended with %v, want %v", r.ended, errStopped)
	}
}

func TestStoppedBeforeItBeganSendsNothing(t *testing.T) {
	for _, waits := range []bool{true, false} {
		r := newRig(t, func(_ *Config, l *line) { l.waits = waits })
		r.Stop()
		r.send(sendOf(1))
		r.send(sendOf(1))
		r.Writer() // returns
		want(t, "sent", r.sent())
		if len(r.ended) > 0 {
			t.Errorf("ended with %v", r.ended)
		}
	}
}

// One stream's requests have places of their own: a stream that has used up its
// own takes none of another's, and what it keeps stays what it was.
//
// Claims: R-8.1.2-7
func TestStreamsShareNoRequestQueue(t *testing.T) {
	a, b := newRig(t, responder), newRig(t, responder)
	for _, r := range []*rig{a, b} {
		r.region(0x33, 8, 1, '.')
		r.line.fenced = true // nothing is answered
	}
	a.take(asks(1, 1), asks(2, 1), asks(3, 1), asks(4, 1))
	if got := codeOf(t, a.feed(asks(5, 1))); got != "1/2/03" {
		t.Errorf("code %s, want 1/2/03", got)
	}
	for msn := range uint32(4) {
		b.take(readRequestTo(msn+1, ReadRequest{SinkSTag: 0xb, Size: 1, SourceSTag: 0x33, SourceTO: 8}))
	}
	// Each answers what it was asked itself.
	for r, answer := range map[*rig]string{a: "RDMA Read Response 0x77:0x700 1.", b: "RDMA Read Response 0xb:0x0 1."} {
		r.line.fenced = false
		r.Kick()
		want(t, "sent", r.sent(), answer, answer, answer, answer)
	}
}
