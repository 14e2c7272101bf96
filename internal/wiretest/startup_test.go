package wiretest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// wires of start-up: one of each transport is enough.
var startupWires = Wires[:3]

// saidBeforeClose reads what Weft said before it closed the connection, by FIN or RST.
func saidBeforeClose(t testing.TB, p *iwarptest.Peer) []byte {
	t.Helper()
	b, err := io.ReadAll(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection stayed open: %v", err)
	}
	return b
}

// An invalid Request is closed without a Reply, as soon as it is known to be one, and
// the listener goes on.
//
// Claims: MPA-7.1-7
func TestBadRequestsAreClosedWithoutAReply(t *testing.T) {
	good := iwarptest.StartFrame(iwarptest.RequestKey, iwarptest.FlagCRC, 1)
	tests := map[string]struct {
		octets []byte
		fin    bool // shows only at the end
	}{
		"nothing":                          {nil, true},
		"another first octet":              {[]byte("X"), false},
		"another last octet of the key":    {iwarptest.Overwrite(good, 15, 'E'), false},
		"the key of a Reply":               {iwarptest.StartFrame(iwarptest.ReplyKey, iwarptest.FlagCRC, 1), false},
		"HTTP":                             {[]byte("GET / HTTP/1.1\r\n\r\n"), false},
		"zeros":                            {make([]byte, 1000), false},
		"revision 3":                       {iwarptest.StartFrame(iwarptest.RequestKey, iwarptest.FlagCRC, 3), false},
		"revision 255":                     {iwarptest.StartFrame(iwarptest.RequestKey, iwarptest.FlagCRC, 255), false},
		"513 octets of private data":       {iwarptest.StartFrame(iwarptest.RequestKey, iwarptest.FlagCRC, 1, make([]byte, 513)...), false},
		"PD_Length 65535":                  {iwarptest.Overwrite(good, 18, 0xFF, 0xFF), false},
		"enhanced with 3 octets":           {iwarptest.StartFrame(iwarptest.RequestKey, iwarptest.FlagCRC|iwarptest.FlagEnhanced, 2, 1, 2, 3), false},
		"enhanced with none":               {iwarptest.StartFrame(iwarptest.RequestKey, iwarptest.FlagCRC|iwarptest.FlagEnhanced, 2), false},
		"less private data than announced": {iwarptest.Overwrite(good, 18, 0, 9), true},
	}
	for n := 1; n < len(good); n++ {
		tests[fmt.Sprintf("%d octets", n)] = struct {
			octets []byte
			fin    bool
		}{good[:n], true}
	}
	for _, w := range startupWires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			for name, tt := range tests {
				p := s.ln.Dial()
				_ = p.SendRaw(tt.octets) // it may have been closed meanwhile
				if tt.fin {
					s.must(p.CloseWrite())
				}
				if said := saidBeforeClose(t, p); len(said) > 0 {
					t.Errorf("%s: answered with % x", name, said)
				}
				_ = p.Conn.Close()
			}
			s.serves()
		})
	}
}

// RFC 5044 appendix C.2.1: one Reply of revision 1 and then the end.
//
// Claims: MPA-7.1-7
func TestARequestOfRevision0IsToldSo(t *testing.T) {
	for _, w := range startupWires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			p := s.ln.Dial()
			s.must(p.SendRaw(iwarptest.StartFrame(iwarptest.RequestKey, iwarptest.FlagMarkers|iwarptest.FlagCRC, 0)))
			flags := byte(iwarptest.FlagReject)
			if w.CRC {
				flags |= iwarptest.FlagCRC
			}
			if said := saidBeforeClose(t, p); !bytes.Equal(said, iwarptest.StartFrame(iwarptest.ReplyKey, flags, 1)) {
				t.Errorf("answered with % x", said)
			}
			s.serves()
		})
	}
}

// Before the Reply the Initiator does not know how to frame: what follows the
// Request belongs to no stream.
func TestOctetsBehindARequestEndTheStartUp(t *testing.T) {
	for _, w := range startupWires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			p := s.ln.Dial()
			s.must(p.SendRaw(append(iwarptest.StartFrame(iwarptest.RequestKey, iwarptest.FlagCRC, 1), p.Frame(iwarptest.Send(1, 1))...)))
			req, err := s.ln.Accept(t.Context())
			s.must(err)
			_, err = req.Accept(t.Context(), s.QP, cm.Params{MPA: w.Config()})
			if !hasCode(err, mpa.CodeStartup) {
				t.Errorf("accepted: %v", err)
			}
			if said := saidBeforeClose(t, p); len(said) > 0 {
				t.Errorf("answered with % x", said)
			}
			if state := s.QP.State(); state != verbs.Idle {
				t.Errorf("the queue pair is %v", state)
			}
			s.serves()
		})
	}
}

// hasCode reports whether err is of MPA, with that code.
func hasCode(err error, code mpa.Code) bool {
	var e *mpa.Error
	return errors.As(err, &e) && e.Code == code
}

// A peer that does not finish its Request holds a place for a limited time, and
// nobody else up.
func TestRequestsThatDoNotFinishAreClosedInTime(t *testing.T) {
	good := iwarptest.StartFrame(iwarptest.RequestKey, iwarptest.FlagCRC, 1, 'h', 'i')
	for n := range len(good) {
		synctest.Test(t, func(t *testing.T) {
			s := setStage(t, Wires[2], verbs.QPConfig{})
			begun := time.Now()
			p := s.ln.Dial()
			s.must(p.SendRaw(good[:n]))
			s.serves()
			if said := saidBeforeClose(t, p); len(said) > 0 {
				t.Errorf("after %d octets: answered with % x", n, said)
			}
			if d := time.Since(begun); d != mpa.DefaultRequestTimeout {
				t.Errorf("after %d octets: closed after %v, expected %v", n, d, mpa.DefaultRequestTimeout)
			}
		})
	}
}

// One octet a second does not stretch the limit.
func TestARequestThatTricklesIsClosedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := setStage(t, Wires[2], verbs.QPConfig{})
		begun := time.Now()
		p := s.ln.Dial()
		for _, b := range iwarptest.StartFrame(iwarptest.RequestKey, iwarptest.FlagCRC, 1) {
			if p.SendRaw([]byte{b}) != nil {
				break
			}
			time.Sleep(time.Second)
		}
		saidBeforeClose(t, p)
		if d := time.Since(begun); d > mpa.DefaultRequestTimeout+time.Second {
			t.Errorf("closed after %v, expected %v", d, mpa.DefaultRequestTimeout)
		}
		s.serves()
	})
}

// dialled runs cm.Connect of the stage's queue pair against p.
func (s *stage) dialled(w Wire, params cm.Params) (p *iwarptest.Peer, result chan error) {
	s.t.Helper()
	ours, theirs, err := w.Pair(s.t.Context())
	s.must(err)
	p = iwarptest.NewPeer(theirs)
	s.t.Cleanup(func() {
		_, _ = ours.Close(), theirs.Close() // they may be closed already
	})
	result = make(chan error, 1)
	go func() {
		_, err := cm.Connect(context.Background(), s.QP, ours, params)
		result <- err
	}()
	return p, result
}

// As an Initiator Weft refuses an invalid Reply.
func TestBadRepliesEndTheStartUp(t *testing.T) {
	good := iwarptest.StartFrame(iwarptest.ReplyKey, iwarptest.FlagCRC|iwarptest.FlagEnhanced, 2, 0, 4, 0, 4)
	for name, octets := range map[string][]byte{
		"another first octet":        []byte("X"),
		"another octet of the key":   iwarptest.Overwrite(good, 9, 'x'),
		"the key of a Request":       iwarptest.StartFrame(iwarptest.RequestKey, iwarptest.FlagCRC|iwarptest.FlagEnhanced, 2, 0, 4, 0, 4),
		"revision 3":                 iwarptest.Overwrite(good, 17, 3),
		"revision 0":                 iwarptest.StartFrame(iwarptest.ReplyKey, iwarptest.FlagMarkers|iwarptest.FlagCRC, 0),
		"revision 1":                 iwarptest.StartFrame(iwarptest.ReplyKey, iwarptest.FlagCRC, 1),
		"revision 2 unenhanced":      iwarptest.StartFrame(iwarptest.ReplyKey, iwarptest.FlagCRC, 2),
		"513 octets of private data": iwarptest.Overwrite(good, 18, 2, 1),
		"enhanced with 3 octets":     iwarptest.Overwrite(good, 18, 0, 3),
	} {
		for _, w := range startupWires {
			t.Run(name+"/"+w.Name, func(t *testing.T) {
				s := setStage(t, w, verbs.QPConfig{})
				p, result := s.dialled(w, cm.Params{MPA: w.Config()})
				_, err := p.ReadStartFrame(iwarptest.RequestKey)
				s.must(err)
				_ = p.SendRaw(octets) // it may be refused before its end
				if err := nettest.Await(t, result); !hasCode(err, mpa.CodeStartup) {
					t.Errorf("connected: %v", err)
				}
				if said := saidBeforeClose(t, p); len(said) > 0 {
					t.Errorf("answered with % x", said)
				}
				if state := s.QP.State(); state != verbs.Idle {
					t.Errorf("the queue pair is %v", state)
				}
				s.serves()
			})
		}
	}
}

// A Reply that is cut short, or never ends, is a connection lost.
func TestRepliesThatDoNotFinishEndTheStartUp(t *testing.T) {
	good := iwarptest.StartFrame(iwarptest.ReplyKey, iwarptest.FlagCRC|iwarptest.FlagEnhanced, 2, 0, 4, 0, 4)
	for n := range len(good) {
		for _, fin := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				s := setStage(t, Wires[2], verbs.QPConfig{})
				begun := time.Now()
				p, result := s.dialled(Wires[2], cm.Params{})
				_, err := p.ReadStartFrame(iwarptest.RequestKey)
				s.must(err)
				s.must(p.SendRaw(good[:n]))
				limit := mpa.DefaultReplyTimeout
				if fin {
					s.must(p.CloseWrite())
					limit = 0
				}
				if err := <-result; !hasCode(err, mpa.CodeClosed) {
					t.Errorf("after %d octets: %v", n, err)
				}
				if d := time.Since(begun); d != limit {
					t.Errorf("after %d octets: ended after %v, expected %v", n, d, limit)
				}
			})
		}
	}
}

// Terms that cannot be met after an accepting Reply are reported by a Terminate,
// the only thing said (RFC 6581 §9.1, §9.2, §8).
//
// Claims: R-7.1-2 R-4.8-3 ME-9.1-12 ME-9.2-10
func TestTermsThatCannotBeMetAreToldInATerminate(t *testing.T) {
	for name, tt := range map[string]struct {
		cfg      mpa.Config
		enhanced []byte
		code     byte
	}{
		"more Reads than IRD":            {mpa.Config{}, []byte{0, 4, 0, 5}, 6},
		"more Reads than the RNIC takes": {mpa.Config{MaxIRD: 0x1000}, []byte{0, 4, 0x01, 0x01}, 6}, // 257
		"no peer-to-peer":                {mpa.Config{PeerToPeer: true}, []byte{0, 4, 0, 4}, 7},
		"peer-to-peer unasked":           {mpa.Config{}, []byte{0x80, 4, 0x80, 4}, 7},
		"no kind of RTR in common":       {mpa.Config{PeerToPeer: true, RTR: mpa.RTRWrite}, []byte{0x80, 4, 0x40, 4}, 7},
		"no kind of RTR at all":          {mpa.Config{PeerToPeer: true}, []byte{0x80, 4, 0, 4}, 7},
		"a Read to open and IRD 0":       {mpa.Config{PeerToPeer: true}, []byte{0x80, 0, 0x40, 4}, 7},
		"more Reads than IRD, with RTR":  {mpa.Config{PeerToPeer: true}, []byte{0x80, 4, 0x80, 200}, 6},
	} {
		for _, w := range startupWires {
			t.Run(name+"/"+w.Name, func(t *testing.T) {
				s := setStage(t, w, verbs.QPConfig{})
				cfg := w.Config()
				cfg.PeerToPeer, cfg.RTR, cfg.MaxIRD = tt.cfg.PeerToPeer, tt.cfg.RTR, tt.cfg.MaxIRD
				p, result := s.dialled(w, cm.Params{MPA: cfg})
				answer := w.Startup()
				answer.Enhanced = tt.enhanced
				_, err := p.Respond(answer)
				s.must(err)
				s.Peer = p
				s.answered(iwarptest.Terminate(2, 0, tt.code, iwarptest.NoHeaders, nil))
				s.must(p.Conn.Close())
				var e *rdmap.TerminateError
				if err := nettest.Await(t, result); !errors.As(err, &e) || e.Layer != 2 || e.Code != tt.code {
					t.Errorf("connected: %v", err)
				}
				if state := s.QP.State(); state != verbs.Idle {
					t.Errorf("the queue pair is %v", state)
				}
				s.serves()
			})
		}
	}
}

// A rejection is not a failure of the stream: the private data arrives, and the
// queue pair can be connected elsewhere.
func TestARejectionArrivesWithItsPrivateData(t *testing.T) {
	for _, w := range startupWires {
		t.Run(w.Name, func(t *testing.T) {
			s := setStage(t, w, verbs.QPConfig{})
			p, result := s.dialled(w, cm.Params{MPA: w.Config()})
			_, err := p.ReadStartFrame(iwarptest.RequestKey)
			s.must(err)
			s.must(p.SendRaw(iwarptest.StartFrame(iwarptest.ReplyKey, iwarptest.FlagCRC|iwarptest.FlagReject|iwarptest.FlagEnhanced, 2, append([]byte{0, 1, 0, 8}, "no"...)...)))
			var e *cm.RejectedError
			if err := nettest.Await(t, result); !errors.As(err, &e) || string(e.PrivateData) != "no" {
				t.Errorf("connected: %v", err)
			}
			if state := s.QP.State(); state != verbs.Idle {
				t.Errorf("the queue pair is %v", state)
			}
			s.must(p.Conn.Close())
			s.serves()
		})
	}
}
