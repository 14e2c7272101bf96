package fileserver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// metered is a handler with a quota, and the refusals that it has reported.
func metered(q Quota, reply int) (h oncrpc.Handler, u *usage, refused *[]error) {
	u, refused = newUsage(), new([]error)
	u.limit(q, waitingMemory)
	h = u.meter(oncrpc.HandlerFunc(func(context.Context, *oncrpc.Request) ([]byte, error) { return make([]byte, reply), nil }),
		func(_ *oncrpc.Request, why error) { *refused = append(*refused, why) })
	return h, u, refused
}

func TestBandwidthIsAHardLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const octets, calls = 1 << 20, 100
		h, u, _ := metered(Quota{Bandwidth: 10 * octets}, octets)
		began := time.Now()
		for range calls {
			if _, err := h.ServeRPC(t.Context(), &oncrpc.Request{}); err != nil {
				t.Fatal(err)
			}
		}
		// All but the last reply, which delays the next call.
		want := (calls-1)*time.Second/10 - burstTime
		if took := time.Since(began); took.Round(time.Microsecond) != want {
			t.Errorf("%d MiB at 10 MiB/s took %v, want %v", calls, took, want)
		}
		if u.calls.Load() != calls || u.out.Load() != calls*octets || u.busy.Load() != 0 {
			t.Errorf("counted %d calls, %d octets, %d answered as busy", u.calls.Load(), u.out.Load(), u.busy.Load())
		}
	})
}

// Listings that come together are long replies to short calls.
func TestWhatCallsAskForCountsBeforeItIsSent(t *testing.T) {
	const octets = 32 << 10
	for proc, args := range map[nfs.Proc]func(*oncrpc.Encoder){
		nfs.ProcRead:        (&nfs.ReadArgs{File: nfs.FH("file"), Count: octets}).Encode,
		nfs.ProcReaddir:     (&nfs.ReaddirArgs{Dir: nfs.FH("dir"), Count: octets}).Encode,
		nfs.ProcReaddirplus: (&nfs.ReaddirplusArgs{Dir: nfs.FH("dir"), MaxCount: octets}).Encode,
	} {
		synctest.Test(t, func(t *testing.T) {
			u, release, passed := newUsage(), make(chan struct{}), 0
			u.limit(Quota{Bandwidth: 4 * octets}, waitingMemory) // so a burst of one
			h := u.meter(oncrpc.HandlerFunc(func(context.Context, *oncrpc.Request) ([]byte, error) {
				passed++
				<-release
				return make([]byte, octets), nil
			}), nil)
			e := oncrpc.NewEncoder(nil)
			args(&e)
			b, err := e.Finish()
			if err != nil {
				t.Fatal(err)
			}
			for range 4 {
				go h.ServeRPC(t.Context(), &oncrpc.Request{Call: oncrpc.Call{Proc: uint32(proc)}, Args: b})
				synctest.Wait()
			}
			if passed != 2 { // the burst, and one that uses more than there is
				t.Errorf("%d calls of %v passed at once, want 2", passed, proc)
			}
			close(release)
			time.Sleep(time.Minute)
		})
	}
}

// A reload with another number of exports changes the memory, and leaves the rest.
func TestBandwidthThatWasUsedCountsAfterAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const octets = 1 << 20
		h, u, _ := metered(Quota{Bandwidth: octets}, octets)
		began := time.Now()
		for range 10 {
			h.ServeRPC(t.Context(), &oncrpc.Request{})
			u.limit(Quota{Bandwidth: octets}, waitingMemory/2)
			u.limit(Quota{Bandwidth: octets}, waitingMemory)
		}
		if took, want := time.Since(began), 9*time.Second-burstTime; took.Round(time.Microsecond) != want {
			t.Errorf("10 MiB at 1 MiB/s took %v with reloads, want %v", took, want)
		}
	})
}

func TestACallThatWaitsEndsWithItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const octets = 1 << 20
		h, _, _ := metered(Quota{Bandwidth: octets}, 0)
		if _, err := h.ServeRPC(t.Context(), &oncrpc.Request{Message: make([]byte, octets)}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if _, err := h.ServeRPC(ctx, &oncrpc.Request{Message: make([]byte, octets)}); !errors.Is(err, oncrpc.ErrNoReply) {
			t.Errorf("got %v, want %v", err, oncrpc.ErrNoReply)
		}
	})
}

func TestABandwidthThatChangesHoldsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const octets = 1 << 20
		h, u, _ := metered(Quota{}, octets)
		began := time.Now()
		for range 10 {
			h.ServeRPC(t.Context(), &oncrpc.Request{})
		}
		if time.Since(began) != 0 {
			t.Error("calls without a limit have waited")
		}
		u.limit(Quota{Bandwidth: octets}, waitingMemory)
		for range 4 {
			h.ServeRPC(t.Context(), &oncrpc.Request{})
		}
		if took := time.Since(began); took < 2*time.Second {
			t.Errorf("after the limit was set calls took %v", took)
		}
	})
}

func TestConnectionsBeyondTheQuotaAreRejected(t *testing.T) {
	h, u, refused := metered(Quota{Connections: 2}, 0)
	ends := make(map[int]func())
	call := func(n int) error {
		_, err := h.ServeRPC(t.Context(), &oncrpc.Request{Origin: new(origin.Origin), Session: n, SessionEnd: func(f func()) { ends[n] = f }})
		return err
	}
	for _, n := range []int{1, 2, 1, 2} {
		if err := call(n); err != nil {
			t.Errorf("connection %d: %v", n, err)
		}
	}
	if err := call(3); !errors.Is(err, tooWeak) || len(*refused) != 1 || !errors.Is((*refused)[0], errConnections) {
		t.Errorf("connection 3: %v, reported %v", err, *refused)
	}
	ends[1]()
	if err := call(3); err != nil {
		t.Errorf("connection 3 when another has ended: %v", err)
	}
	u.limit(Quota{Connections: 1}, waitingMemory)
	if err := call(2); err != nil {
		t.Errorf("a connection that was there before the limit: %v", err)
	}
}
