//go:build !race

// That nothing is allocated once it is warm. Under the race detector pools lose
// what they are given, at random.

package mpa

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/mpa/internal/turns"
)

// A ticker signals when all of a batch has arrived.
type ticker struct {
	placing
	want, got int
	all       chan struct{}
}

func (k *ticker) ULPDU(u []byte) error { return k.tick(k.placing.ULPDU(u)) }
func (k *ticker) End() error           { return k.tick(nil) }
func (k *ticker) tick(err error) error {
	if k.got++; k.got%k.want == 0 {
		k.all <- struct{}{}
	}
	return err
}

func TestAStreamInMotionAllocatesNothing(t *testing.T) {
	const frames = 20
	for _, p := range []Params{{}, {CRC: true}, {CRC: true, SendMarkers: true, RecvMarkers: true}} {
		for _, n := range []int{64, 30000, 60000} {
			t.Run(fmt.Sprintf("%s/%d", termsName(p), n), func(t *testing.T) {
				a, b := tcpPair(t)
				p.Initiator = true
				out, in := NewConn(a, p), NewConn(b, p)
				k := &ticker{want: frames, all: make(chan struct{}, 1), placing: placing{place: make([]byte, MaxMULPDU)}}
				ended := make(chan error, 1)
				go func() { ended <- in.Receive(k) }()
				header, payload := pattern(18, 1), [][]byte{pattern(n, 1)}
				run := func() {
					for range frames {
						out.Append(header, payload)
						if !out.Room() {
							flushAll(out)
						}
					}
					if _, err := flushAll(out); err != nil {
						t.Error(err)
					}
					select {
					case <-k.all:
					case err := <-ended:
						t.Fatal(err)
					}
				}
				for range 20 {
					run() // buffers grow
				}
				if allocs := testing.AllocsPerRun(20, run); allocs != 0 {
					t.Errorf("%v allocations for %d frames, expected none", allocs, frames)
				}
				out.CloseWrite()
				nettest.Await(t, ended)
			})
		}
	}
}

func TestWaitingInReceivesPlaceAllocatesNothing(t *testing.T) {
	a, b := tcpPair(t)
	out, in := NewConn(a, Params{Initiator: true, CRC: true}), NewConn(b, Params{Initiator: true, CRC: true})
	lead(t, in)
	k := &ticker{want: 1, all: make(chan struct{}, 1)}
	ended := make(chan error, 1)
	go func() { ended <- in.Receive(k) }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	u, led := pattern(20, 1), 0
	run := func() {
		free := in.turns.State() == turns.Free
		if !free {
			in.Poll() // somebody has come
		}
		out.Append(u, nil)
		_, _ = flushAll(out)
		if free && in.Wait(ctx) {
			led++
			in.Poll()
		}
		<-k.all
		for range 100 {
			runtime.Gosched() // Receive parks
		}
	}
	for led < 10 {
		run()
	}
	led = 0
	if allocs := testing.AllocsPerRun(200, run); allocs != 0 || led == 0 {
		t.Errorf("%v allocations a ULPDU, %d waits in Receive's place, expected none and some", allocs, led)
	}
	_ = out.CloseWrite()
	if err := nettest.Await(t, ended); err != io.EOF {
		t.Error(err)
	}
}
