//go:build unix

package ddp

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/internal/pages/pagestest"
)

// guarded gives r segments as an LLP does.
func guarded(r *Receiver, us ...[]byte) error {
	err, fault := func() (err, fault error) {
		defer pages.CatchIn(&fault, r.Writing, pages.Trap())
		return r.ULPDUs(us), nil
	}()
	if fault != nil {
		return r.Unwritable(fault)
	}
	return err
}

// Memory that cannot be written is refused as an access that its STag does not
// allow; for an untagged buffer the ULP says what it means. Nothing comes after it.
//
// Claims: DDP-7.1-12 DDP-7.1-19
func TestMemoryThatCannotBeWrittenEndsTheReception(t *testing.T) {
	s := newSink(t)
	s.mem = pagestest.ReadOnly(t, 1)
	r := NewReceiver(1, s)
	err := guarded(r, write(s.stag, s.base+8, "payload"))
	e := new(Error)
	if !errors.As(err, &e) || e.EType != TaggedBuffer || e.Code != CodeNotAssociated || e.Fault != FaultMemory ||
		len(e.Header()) != TaggedLen || !strings.Contains(err.Error(), "cannot be accessed") {
		t.Errorf("tagged: %v", err)
	}
	if err := r.ULPDU(write(s.stag, s.base, "")); err != nil || len(s.delivered) > 0 {
		t.Errorf("then %v, delivered %v, expected silence", err, s.delivered)
	}

	s = newSink(t)
	s.posted[0] = [][]byte{pagestest.ReadOnly(t, 1)}
	r = NewReceiver(1, s)
	err = guarded(r, send(0, 1, "payload"))
	if f := new(pages.Fault); !errors.As(err, &f) || !strings.Contains(err.Error(), "message 1 on queue 0") {
		t.Errorf("untagged: %v", err)
	}
	if err := r.ULPDU(send(0, 2, "")); err != nil || len(s.delivered) > 0 {
		t.Errorf("then %v, delivered %v, expected silence", err, s.delivered)
	}
}

// The same where the LLP puts payload into its place.
func TestMemoryThatTheLLPCannotWriteEndsTheReception(t *testing.T) {
	cause := &pages.Fault{Addr: 0x1000}
	for name, u := range map[string][]byte{"tagged": write(0x1234, 0x1000, "payload"), "untagged": send(0, 1, "payload")} {
		s := newSink(t)
		s.post(0, 64)
		r := NewReceiver(1, s)
		skip, ok, err := r.Begin(u[:HeaderLen(u)], len(u))
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		if _, err := r.Window(nil, skip); err != nil {
			t.Fatal(err)
		}
		err = r.Unwritable(cause)
		r.Release()
		if err == nil || !strings.Contains(err.Error(), cause.Error()) {
			t.Errorf("%s: %v, expected %v", name, err, cause)
		}
		if s.held {
			t.Errorf("%s: memory is held still", name)
		}
		if err := r.End(); err != nil || len(s.delivered) > 0 {
			t.Errorf("%s: %v, delivered %v, expected silence", name, err, s.delivered)
		}
	}
}

// Of segments that are placed together, the one whose memory cannot be written is at fault.
func TestTheSegmentOfARunThatCannotBeWrittenIsAtFault(t *testing.T) {
	const n = 4
	for bad := range n {
		s := newSink(t)
		s.mem = pagestest.Truncated(t, bad, n)
		r := NewReceiver(1, s)
		var us [][]byte
		for i := range n {
			h := begins
			h.TO += uint64(i * pagestest.Page)
			h.Last = i == n-1
			us = append(us, tagged(h, strings.Repeat("x", pagestest.Page)))
		}
		e := new(Error)
		if err := guarded(r, us...); !errors.As(err, &e) || e.Fault != FaultMemory || e.SegmentLength != len(us[bad]) ||
			!bytes.Equal(e.Header(), us[bad][:TaggedLen]) {
			t.Errorf("page %d: %v", bad, err)
		}
		if header, length := r.Offending(); !bytes.Equal(header, us[bad][:TaggedLen]) || length != len(us[bad]) {
			t.Errorf("page %d: offending % x of %d octets", bad, header, length)
		}
		if len(s.delivered) > 0 || len(r.Writing()) > 0 {
			t.Errorf("page %d: delivered %v, still writing to %d pieces", bad, s.delivered, len(r.Writing()))
		}
	}
}

// Of messages that are alike, the one whose memory cannot be written is at fault, and those before
// it are delivered.
func TestTheMessageAmongAlikeOnesThatCannotBeWrittenIsAtFault(t *testing.T) {
	const n = 4
	for bad := 1; bad < n; bad++ {
		s := newSink(t)
		s.mem = pagestest.Truncated(t, bad, n)
		r := NewReceiver(1, s)
		var us [][]byte
		for i := range n {
			us = append(us, write(s.stag, s.base+uint64(i*pagestest.Page), "payload"))
		}
		e := new(Error)
		if err := guarded(r, us...); !errors.As(err, &e) || e.Fault != FaultMemory || e.SegmentLength != len(us[bad]) ||
			!bytes.Equal(e.Header(), us[bad][:TaggedLen]) {
			t.Errorf("message %d: %v", bad, err)
		}
		if s.alike == 0 || len(s.delivered) != bad || len(r.Writing()) > 0 {
			t.Errorf("message %d: %d delivered, %d taken as alike, still writing to %d pieces", bad, len(s.delivered), s.alike, len(r.Writing()))
		}
		if err := r.ULPDU(us[0]); err != nil || len(s.delivered) != bad {
			t.Errorf("message %d: %v, and another is delivered behind it", bad, err)
		}
	}
}

// The same for untagged messages.
func TestTheUntaggedMessageAmongAlikeOnesThatCannotBeWrittenIsAtFault(t *testing.T) {
	const n = 4
	for bad := 1; bad < n; bad++ {
		s := newSink(t)
		mem := pagestest.Truncated(t, bad, n)
		r := NewReceiver(1, s)
		var us [][]byte
		for i := range n {
			s.posted[0] = append(s.posted[0], mem[i*pagestest.Page:][:pagestest.Page])
			us = append(us, send(0, uint32(i+1), "payload"))
		}
		err := guarded(r, us...)
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("message %d on queue 0", bad+1)) {
			t.Errorf("message %d: %v", bad, err)
		}
		if header, length := r.Offending(); !bytes.Equal(header, us[bad][:UntaggedLen]) || length != len(us[bad]) {
			t.Errorf("message %d: offending % x of %d octets", bad, header, length)
		}
		if s.alike == 0 || len(s.delivered) != bad || len(r.Writing()) > 0 {
			t.Errorf("message %d: %d delivered, %d taken as alike, still writing to %d pieces", bad, len(s.delivered), s.alike, len(r.Writing()))
		}
		if err := r.ULPDU(us[0]); err != nil || len(s.delivered) != bad {
			t.Errorf("message %d: %v, and another is delivered behind it", bad, err)
		}
	}
}

// A run that is in place is not to blame for what cannot be written later.
func TestARunThatIsInPlaceIsNotAtFault(t *testing.T) {
	s := newSink(t)
	s.mem = pagestest.Truncated(t, 1, 2)
	r := NewReceiver(1, s)
	last := begins
	last.TO, last.Last = last.TO+100, true
	bad := write(s.stag, s.base+uint64(pagestest.Page), "payload")
	payload := strings.Repeat("x", 100)
	e := new(Error)
	if err := guarded(r, tagged(begins, payload), tagged(last, payload), bad); !errors.As(err, &e) ||
		!bytes.Equal(e.Header(), bad[:TaggedLen]) || e.SegmentLength != len(bad) || len(s.delivered) != 1 {
		t.Errorf("%v, of % x; delivered %v", err, e.Header(), s.delivered)
	}
}
