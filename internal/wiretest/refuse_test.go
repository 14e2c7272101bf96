package wiretest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/listening"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// Where the regions of a stage lie in the arena, in octets. Whatever else the
// arena holds is guard.
const (
	exposedOff, exposedLen = 0x4000, 0x10000 // all rights
	aloneOff, aloneLen     = 0x20000, 0x1000 // one right each, in turn
	recvOff, recvLen       = 0x30000, 0x8000 // for receives
	recvSize               = 0x400           // of one receive
	atomicOff, atomicLen   = 0x3C000, 0x40   // all rights
)

// A stage is a Side with a Peer connected to it and something of each kind of
// memory.
type stage struct {
	*Side
	*iwarptest.Peer
	wire Wire
	ln   *Listener

	exposed, atomic, recv               *verbs.MR
	local, readable, writable           *verbs.MR // only that
	foreign                             *verbs.MR // of another domain, all rights
	sibling, bound                      *verbs.MR // for another queue pair alone, and for this one, all rights
	top                                 *verbs.MR // ends at tagged offset 2^64, all rights
	revokedTag, unknownTag, staleKeyTag uint32
	exposedTag, foreignTag, topTag      uint32
	siblingTag, boundTag                uint32
	localTag, readableTag, writableTag  uint32
	exposedTO, atomicTO, topTO, aloneTO uint64
	exposedEnd                          uint64
}

// setStage makes a stage, up to the connection.
func setStage(t testing.TB, w Wire, cfg verbs.QPConfig) *stage {
	t.Helper()
	s := &stage{Side: NewSide(t, cfg, 0), wire: w}
	s.exposed = s.Register(exposedOff, exposedLen, AllRights)
	s.atomic = s.Register(atomicOff, atomicLen, AllRights)
	s.recv = s.Register(recvOff, recvLen, verbs.LocalRead|verbs.LocalWrite)
	s.local = s.Register(aloneOff, aloneLen, verbs.LocalRead|verbs.LocalWrite)
	s.readable = s.Register(aloneOff, aloneLen, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead)
	s.writable = s.Register(aloneOff, aloneLen, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteWrite)
	s.foreign = s.RegisterAs(s.Foreign, VA+exposedOff, exposedOff, exposedLen, AllRights)
	s.top = s.RegisterAs(s.PD, 1<<64-exposedLen, exposedOff, exposedLen, AllRights)
	s.sibling = s.Bind(s.NewQP(verbs.QPConfig{}), exposedOff, exposedLen, AllRights)
	s.bound = s.Bind(s.QP, exposedOff, exposedLen, AllRights)
	s.siblingTag, s.boundTag = uint32(s.sibling.STag()), uint32(s.bound.STag())
	revoked := s.Register(exposedOff, exposedLen, AllRights)
	if err := revoked.Deallocate(); err != nil {
		t.Fatal(err)
	}
	s.revokedTag = uint32(revoked.STag())
	s.exposedTag, s.foreignTag, s.topTag = uint32(s.exposed.STag()), uint32(s.foreign.STag()), uint32(s.top.STag())
	s.localTag, s.readableTag, s.writableTag = uint32(s.local.STag()), uint32(s.readable.STag()), uint32(s.writable.STag())
	s.staleKeyTag = s.exposedTag ^ 1
	s.unknownTag = s.exposedTag
	for taken := true; taken; {
		s.unknownTag += 0x100
		taken = false
		for _, mr := range []*verbs.MR{s.exposed, s.atomic, s.recv, s.local, s.readable, s.writable, s.foreign, s.top, s.sibling, s.bound} {
			taken = taken || uint32(mr.STag())>>8 == s.unknownTag>>8
		}
	}
	s.exposedTO, s.atomicTO, s.aloneTO, s.topTO = s.exposed.Base(), s.atomic.Base(), s.local.Base(), s.top.Base()
	s.exposedEnd = s.exposedTO + exposedLen
	s.ln = s.Listen(w, w.Config())
	return s
}

// An offence is what a peer can do wrong, and what it gets.
type offence struct {
	name   string
	config func(*verbs.QPConfig)
	post   func(s *stage) // work of ours under way; the Peer has read its messages
	asks   int            // how many messages those are

	// send is what the Peer sends; culprit is the number of the ULPDU at
	// fault, the last if it is 0.
	send    func(s *stage) [][]byte
	culprit int

	answers            func(s *stage) [][]byte // what may come before the Terminate: all, or the first of them
	layer, etype, code byte
	headers            iwarptest.Headers

	receives []verbs.Status // of two receives of recvSize octets, flushed if nothing else
	sends    []verbs.Status // of the work posted
	event    verbs.EventID  // 0 is none
	placed   func(s *stage) // says what of the memory is to change
	after    func(s *stage) // looks at what else is to be

	// atOnce: the offence is what arrives together, so it is not tried octet by octet.
	atOnce bool
}

// try has the offence committed over every kind of wire. What is checked is
// that nothing but the Terminate is answered, and then FIN; that what follows
// the offence is not placed; the memory; completions; the event; the words of
// the error; and that others are served as before.
func (o *offence) try(t *testing.T) {
	for _, w := range Wires {
		if !o.atOnce || !w.Trickle {
			t.Run(w.Name, func(t *testing.T) { o.tryOver(t, w) })
		}
	}
}

func (o *offence) tryOver(t *testing.T, w Wire) {
	cfg := verbs.QPConfig{IRD: 2, ORD: 2}
	if o.config != nil {
		o.config(&cfg)
	}
	s := setStage(t, w, cfg)
	s.Receives(s.recv, 0, recvSize, 2)
	s.Peer = s.ln.Connect(s.QP)
	if o.post != nil {
		o.post(s)
		if o.asks > 0 {
			s.open()
		}
		for range o.asks {
			if _, err := s.NextMessage(); err != nil {
				t.Fatalf("reading what was posted: %v", err)
			}
		}
	}
	if o.placed != nil {
		o.placed(s)
	}
	if o.event != 0 {
		s.ExpectEvent(o.event)
	}
	ulpdus := o.send(s)
	culprit := ulpdus[len(ulpdus)-1]
	if o.culprit > 0 {
		culprit = ulpdus[o.culprit]
	}
	// A good message behind the bad one is dropped (RFC 5041 §7.1).
	s.must(s.Send(append(ulpdus, iwarptest.Write(s.exposedTag, s.exposedTO+0x8000, []byte("too late")...))...))

	var optional [][]byte
	if o.answers != nil {
		optional = o.answers(s)
	}
	s.answeredAfter(optional, iwarptest.Terminate(o.layer, o.etype, o.code, o.headers, culprit))
	if state := s.QP.State(); state != verbs.Terminate {
		t.Errorf("the queue pair is %v before the peer has closed, expected %v", state, verbs.Terminate)
	}
	s.must(s.Peer.Close())
	s.Reach(verbs.Error)
	s.CheckMemory()
	s.wantError(o.layer, o.etype, o.code)
	receives := o.receives
	for len(receives) < 2 {
		receives = append(receives, verbs.Flushed)
	}
	s.Statuses(s.RecvCQ, 100, receives...)
	s.Statuses(s.SendCQ, 0, o.sends...)
	if o.after != nil {
		o.after(s)
	}
	s.serves()
}

// open sends the first message, which is the Initiator's (RFC 5044 §7.1.2 rule
// 4), and waits until it has arrived: now the Side may send.
func (s *stage) open() {
	s.t.Helper()
	s.must(s.Send(iwarptest.Write(0, 0)))
	s.ready()
}

// ready waits until the Side may send.
func (s *stage) ready() {
	s.t.Helper()
	select {
	case <-listening.OfQP(s.QP).Ready():
	case <-time.After(iwarptest.DefaultTimeout):
		s.t.Fatalf("the queue pair, %v, is not ready to send: %v", s.QP.State(), s.QP.Err())
	}
}

func (s *stage) must(err error) {
	if err != nil {
		s.t.Helper()
		s.t.Fatal(err)
	}
}

// next reads one ULPDU for each of want, in this order.
func (s *stage) next(want ...[]byte) {
	s.t.Helper()
	for _, w := range want {
		if u, err := s.Next(); err != nil || !bytes.Equal(u, w) {
			s.t.Fatalf("came\n%x, %v, expected\n%x", u, err, w)
		}
	}
}

// answered reads up to the FIN and compares.
func (s *stage) answered(want ...[]byte) {
	s.t.Helper()
	s.answeredAfter(nil, want...)
}

// answeredAfter is answered where some of the first ULPDUs may be left out: all
// from one of them on.
func (s *stage) answeredAfter(optional [][]byte, want ...[]byte) {
	s.t.Helper()
	got, err := s.Rest()
	if err != nil {
		s.t.Fatalf("reading the answer: %v", err)
	}
	for len(optional) > 0 && len(got) > 0 && bytes.Equal(got[0], optional[0]) {
		got, optional = got[1:], optional[1:]
	}
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			s.t.Fatalf("answer ends after %d ULPDUs, expected\n%x", i, want[i])
		case i >= len(want):
			s.t.Fatalf("answer goes on after %d ULPDUs:\n%x", i, got[i])
		case !bytes.Equal(got[i], want[i]):
			s.t.Fatalf("ULPDU %d of the answer is\n%x, expected\n%x", i, got[i], want[i])
		}
	}
}

// wantError holds the queue pair's error to the Terminate that was sent.
func (s *stage) wantError(layer, etype, code byte) {
	s.t.Helper()
	err := s.QP.Err()
	var e *rdmap.TerminateError
	if !errors.As(err, &e) || e.Remote || e.Layer != layer || e.EType != etype || e.Code != code {
		s.t.Fatalf("the queue pair's error is %v, expected one of our own Terminate %d/%d/%02x", err, layer, etype, code)
	}
	if text, numbers := err.Error(), fmt.Sprintf("(%d/%d/%02X)", layer, etype, code); !strings.Contains(text, numbers) || len(text) < 40 {
		s.t.Errorf("the error says %q, expected words and %s", text, numbers)
	}
}

// serves shows that the listener still takes a peer that behaves.
func (s *stage) serves() {
	s.t.Helper()
	s.Events(len(s.expected)) // a state is seen before its event, which is to come before the next stream's
	s.QP = s.NewQP(verbs.QPConfig{})
	s.Receives(s.recv, 0, recvSize, 1)
	p := s.ln.Connect(s.QP)
	s.must(p.Send(iwarptest.Send(1, []byte("good day")...)))
	wc := s.Statuses(s.RecvCQ, 100, verbs.Success)[0]
	if wc.Bytes != 8 || string(s.Arena[recvOff:recvOff+8]) != "good day" {
		s.t.Errorf("the next peer's message arrived as %q", s.Arena[recvOff:recvOff+int(wc.Bytes)])
	}
	s.Expect(recvOff, []byte("good day")...)
	s.ExpectEvent(verbs.EventLLPCloseComplete)
	s.must(p.CloseWrite())
	if rest, err := p.Rest(); err != nil || len(rest) > 0 {
		s.t.Errorf("after a graceful close came %x, %v", rest, err)
	}
	s.must(p.Close())
	s.Reach(verbs.Idle)
	if err := s.QP.Err(); err != nil {
		s.t.Errorf("a graceful close left %v", err)
	}
}

// tryAll runs a table.
func tryAll(t *testing.T, offences []offence) {
	for _, o := range offences {
		t.Run(o.name, o.try)
	}
}

// one is a send of one ULPDU that does not depend on the stage.
func one(u []byte) func(*stage) [][]byte { return func(*stage) [][]byte { return [][]byte{u} } }
