package iwarptest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// peers returns two Peers that are through start-up, over a Pipe.
func peers(t *testing.T, initiator, responder Startup) (i, r *Peer) {
	t.Helper()
	a, b := Pipe()
	i, r = NewPeer(a), NewPeer(b)
	done := make(chan error, 1)
	go func() {
		_, err := r.Respond(responder)
		done <- err
	}()
	_, err := i.Initiate(initiator)
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	return i, r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestStartupSettlesCRCAndMarkersForEachDirection(t *testing.T) {
	for _, tt := range []struct {
		name                     string
		initiator, responder     Startup
		toInitiator, toResponder Framing
	}{
		{"nothing asked for", Startup{}, Startup{}, Framing{}, Framing{}},
		{"CRC by the initiator", Startup{CRC: true}, Startup{}, Framing{CRC: true}, Framing{CRC: true}},
		{"CRC by the responder", Startup{}, Startup{CRC: true}, Framing{CRC: true}, Framing{CRC: true}},
		{"markers one way", Startup{Markers: true}, Startup{}, Framing{Markers: true}, Framing{}},
		{"markers the other way", Startup{}, Startup{Markers: true}, Framing{}, Framing{Markers: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i, r := peers(t, tt.initiator, tt.responder)
			if i.In != tt.toInitiator || r.Out != tt.toInitiator || i.Out != tt.toResponder || r.In != tt.toResponder {
				t.Errorf("the initiator has %+v and %+v, the responder %+v and %+v", i.In, i.Out, r.In, r.Out)
			}
		})
	}
}

func TestAcceptAgreesToWhatIsAskedFor(t *testing.T) {
	for _, tt := range []struct {
		name           string
		request, reply []byte
	}{
		{"revision 1", StartFrame(RequestKey, FlagCRC, 1, 'h', 'i'), StartFrame(ReplyKey, FlagCRC, 1)},
		{"revision 1 with markers", StartFrame(RequestKey, FlagMarkers, 1), StartFrame(ReplyKey, FlagMarkers, 1)},
		{"revision 0", StartFrame(RequestKey, FlagCRC|FlagMarkers, 0), StartFrame(ReplyKey, FlagCRC|FlagMarkers, 0)},
		{
			"revision 2: IRD becomes ORD, flags stay",
			StartFrame(RequestKey, FlagCRC|FlagEnhanced, 2, 0x81, 0x02, 0xC3, 0x04, 'h', 'i'),
			StartFrame(ReplyKey, FlagCRC|FlagEnhanced, 2, 0x83, 0x04, 0xC1, 0x02),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := Pipe()
			_, err := a.Write(tt.request)
			must(t, err)
			request, err := NewPeer(b).Accept()
			if err != nil || !bytes.Equal(request, tt.request) {
				t.Fatalf("request % x, %v", request, err)
			}
			reply := make([]byte, len(tt.reply))
			if _, err := io.ReadFull(a, reply); err != nil || !bytes.Equal(reply, tt.reply) {
				t.Errorf("reply\n% x, %v, expected\n% x", reply, err, tt.reply)
			}
		})
	}
}

func TestAStartFrameWithAnotherKeyIsAnError(t *testing.T) {
	a, b := Pipe()
	_, err := a.Write(StartFrame(ReplyKey, 0, 1))
	must(t, err)
	if _, err := NewPeer(b).Accept(); err == nil || !strings.Contains(err.Error(), RequestKey) {
		t.Errorf("error %v, expected one that names the key", err)
	}
}

func TestMessagesArePutTogetherFromSegments(t *testing.T) {
	i, r := peers(t, Startup{CRC: true, Markers: true}, Startup{Markers: true})
	whole := bytes.Repeat([]byte("0123456789"), 100)
	for _, u := range [][]byte{Write(5, 0x1000, whole...), Send(1, whole...)} {
		must(t, i.Send(Split(u, 300)...))
		m, err := r.NextMessage()
		if err != nil || !m.Last || !bytes.Equal(m.Payload, whole) {
			t.Errorf("received %v, %v", m, err)
		}
	}
}

func TestSegmentsThatDoNotContinueAMessageAreAnError(t *testing.T) {
	for name, second := range map[string][]byte{
		"a gap":           Write(5, 0x1003, 3),
		"another STag":    Write(6, 0x1002, 3),
		"another opcode":  ReadResponse(5, 0x1002, 3),
		"another queue":   Untagged(OpSend, 0, 1, 1, 2, 3),
		"another message": Send(2, 3),
	} {
		t.Run(name, func(t *testing.T) {
			i, r := peers(t, Startup{}, Startup{})
			must(t, i.Send(ClearLast(Write(5, 0x1000, 1, 2)), second))
			if m, err := r.NextMessage(); err == nil {
				t.Errorf("received %v, expected an error", m)
			}
		})
	}
}

// What is wrong on the way in is an error that says what.
func TestWhatIsWrongWithAnFPDUIsSaid(t *testing.T) {
	for _, tt := range []struct {
		name string
		send func(p *Peer) []byte
		err  string
	}{
		{"CRC", func(p *Peer) []byte { return FlipBit(p.Frame(Send(1)), -1) }, "CRC"},
		{"pad", func(p *Peer) []byte {
			p.Out.CRC = false
			return Overwrite(p.Frame(Send(1, 7)), 23, 9)
		}, "CRC"},
		{"marker", func(p *Peer) []byte { p.Out.MarkerError = 4; return p.Frame(Send(1)) }, "marker"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i, r := peers(t, Startup{CRC: true}, Startup{Markers: true})
			must(t, i.SendRaw(tt.send(i)))
			if _, err := r.Next(); err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, expected one about the %s", err, tt.err)
			}
		})
	}
	i, r := peers(t, Startup{}, Startup{})
	must(t, i.SendRaw(Overwrite(i.Frame(Send(1, 7)), 21, 9)))
	if _, err := r.Next(); err == nil || !strings.Contains(err.Error(), "pad") {
		t.Errorf("error %v, expected one about the pad", err)
	}
}

func TestTheEndTellsWhereItCame(t *testing.T) {
	fpdu := (&Peer{}).Frame(Send(1, 1, 2, 3))
	for cut := range len(fpdu) + 1 {
		i, r := peers(t, Startup{}, Startup{})
		must(t, i.SendRaw(fpdu[:cut]))
		must(t, i.CloseWrite())
		ulpdus, err := r.Rest()
		whole := cut == 0 || cut == len(fpdu)
		if whole && err != nil || !whole && !errors.Is(err, io.ErrUnexpectedEOF) || len(ulpdus) != cut/len(fpdu) {
			t.Errorf("FIN after %d octets: %x, %v", cut, ulpdus, err)
		}
	}
	i, r := peers(t, Startup{}, Startup{})
	must(t, i.Reset())
	if _, err := r.Rest(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("reset: %v", err)
	}
}

// A connection that has no halves or no reset says so.
func TestWhatAConnectionCannotDoIsAnError(t *testing.T) {
	a, _ := net.Pipe()
	p := NewPeer(a)
	if err := errors.Join(p.CloseWrite()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("CloseWrite: %v", err)
	}
	if err := p.Reset(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Reset: %v", err)
	}
}

func TestAPeerWaitsAsLongAsItsTimeout(t *testing.T) {
	for _, tt := range []struct{ timeout, want time.Duration }{{0, DefaultTimeout}, {time.Minute, time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			a, _ := BufferedPipe(8)
			p := NewPeer(a)
			p.Timeout = tt.timeout
			begun := time.Now()
			if _, err := p.Next(); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("Next: %v", err)
			}
			if err := p.Send(Send(1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("Send: %v", err)
			}
			if d := time.Since(begun); d != 2*tt.want {
				t.Errorf("took %v, expected %v", d, 2*tt.want)
			}
		})
	}
}

func TestATricklingPeerSendsOctetByOctet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := BufferedPipe(1)
		p := NewPeer(a)
		p.Trickle = true
		sent := make(chan error, 1)
		go func() { sent <- p.Send(Send(1, 'x')) }()
		fpdu, buf := (&Peer{}).Frame(Send(1, 'x')), make([]byte, 100)
		for n := range fpdu {
			if k, err := b.Read(buf); k != 1 || err != nil || buf[0] != fpdu[n] {
				t.Fatalf("octet %d: % x, %v", n, buf[:k], err)
			}
		}
		must(t, <-sent)
	})
}

func TestParseTakesApartWhatTheMessagesPutTogether(t *testing.T) {
	read := Read{SinkSTag: 1, SinkTO: 2, Size: 3, SourceSTag: 4, SourceTO: 5}
	s, err := Parse(ReadRequest(6, read))
	must(t, err)
	if got, ok := s.Read(); !ok || got != read || s.QN != 1 || s.MSN != 6 || s.String() != "opcode 1, QN 1, MSN 6, MO 0, last true, 28 octets" {
		t.Errorf("a Read Request is %+v, %v", got, s)
	}
	if _, ok := s.Terminate(); ok {
		t.Error("a Read Request is a Terminate")
	}
	s, err = Parse(Terminate(1, 2, 0x13, ReadHeader, ReadRequest(6, read)))
	must(t, err)
	if e, ok := s.Terminate(); !ok || e != (ErrorCode{1, 2, 0x13}) || s.String() != "Terminate 1/2/13" {
		t.Errorf("a Terminate is %v, %v", e, s)
	}
	if _, ok := s.Read(); ok {
		t.Error("a Terminate is a Read Request")
	}
	s, err = Parse(Write(7, 8, 9))
	must(t, err)
	if s.STag != 7 || s.TO != 8 || !s.Tagged || s.DV != 1 || s.RV != 1 || s.Reserved != 0 || s.String() != "opcode 0, STag 00000007, TO 0x8, last true, 1 octets" {
		t.Errorf("a Write is %v", s)
	}
	for _, u := range [][]byte{nil, {0xC1}, Write(7, 8)[:13], Send(1)[:17]} {
		if s, err := Parse(u); err == nil {
			t.Errorf("% x is %v, expected an error", u, s)
		}
	}
}
