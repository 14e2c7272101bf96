package records

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/ddp"
)

// A list is a Sink that keeps what it is given.
type list struct {
	ddp.Sink
	got  [][]byte
	fail error
}

func (s *list) Idle() {}

func (s *list) ULPDU(u []byte) error {
	s.got = append(s.got, bytes.Clone(u))
	return s.fail
}

// fill appends n segments, segment i of i+1 octets of payload.
func fill(l *LLP, n int) (want [][]byte) {
	for i := range n {
		payload := bytes.Repeat([]byte{byte(i)}, i+1)
		l.Append([]byte("head"), [][]byte{payload[:i/2], payload[i/2:]})
		want = append(want, append([]byte("head"), payload...))
	}
	return want
}

func TestSegmentsArriveWholeAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := Pipe()
		var want [][]byte
		s := &list{}
		over := make(chan error)
		go func() { over <- b.Receive(s) }()
		for range 30 {
			want = append(want, fill(a, batchSize)...)
			for drained := false; !drained; {
				var err error
				if drained, err = a.Flush(true); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = a.CloseWrite()
		if err := <-over; err != io.EOF {
			t.Errorf("the reception ended with %v", err)
		}
		if a.Written() != uint64(len(want)) || len(s.got) != len(want) {
			t.Fatalf("%d of %d segments were written, %d arrived", a.Written(), len(want), len(s.got))
		}
		for i := range want {
			if !bytes.Equal(s.got[i], want[i]) {
				t.Fatalf("segment %d is % x, expected % x", i, s.got[i], want[i])
			}
		}
	})
}

// What has begun to leave stays, and what has not goes.
func TestTruncateKeepsWhatHasBegunToLeave(t *testing.T) {
	a, b := Pipe()
	big := make([]byte, segmentSize-4)
	for range 20 { // more than the pipe takes
		a.Append([]byte("head"), [][]byte{big})
	}
	if drained, err := a.Flush(false); drained || err != nil {
		t.Fatalf("drained %v: %v", drained, err)
	}
	written := a.Written()
	if n := a.Truncate(0); n != written+1 {
		t.Errorf("%d segments remain, expected %d and the one that has begun", n, written)
	}
	s := &list{fail: errors.New("enough")}
	if err := b.Receive(s); err != s.fail || len(s.got) != 1 {
		t.Errorf("%d segments: %v", len(s.got), err)
	}
}

func TestHowAStreamEndsIsTold(t *testing.T) {
	for name, tt := range map[string]struct {
		end         func(peer *LLP)
		eof         bool
		lost, reset bool
	}{
		"FIN":             {end: func(p *LLP) { _ = p.CloseWrite() }, eof: true},
		"a close":         {end: func(p *LLP) { _ = p.Close() }, eof: true},
		"a reset":         {end: func(p *LLP) { _ = p.Reset() }, lost: true, reset: true},
		"within a record": {end: func(p *LLP) { _, _ = p.out.write([]byte{0, 0}); _ = p.CloseWrite() }, lost: true},
		"no record":       {end: func(p *LLP) { _, _ = p.out.write([]byte{1, 2, 3, 4}) }},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := Pipe()
			tt.end(b)
			err := a.Receive(&list{})
			if tt.eof {
				if err != io.EOF {
					t.Errorf("%v, expected io.EOF", err)
				}
				return
			}
			e, ok := ddp.AsLLPError(err)
			if !ok || e.Lost() != tt.lost || e.Reset() != tt.reset {
				t.Errorf("%v, expected lost %v, reset %v", err, tt.lost, tt.reset)
			}
		})
	}
}

// RDMAP and the Verbs run over it, and so without what an LLP may offer besides.
func TestTheLLPOffersNothingBesides(t *testing.T) {
	a, _ := Pipe()
	switch llp := any(a).(type) {
	case ddp.EstablishedLLP, ddp.StreamingLLP, ddp.AddressedLLP, ddp.SpinningLLP, ddp.NonBlockingLLP, ddp.WaitableLLP:
		t.Errorf("%T offers more than a ddp.LLP has to", llp)
	}
}
