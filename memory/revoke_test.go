package memory

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/ddp"
)

// revokers are the ways to end the use of an STag.
var revokers = []struct {
	name   string
	revoke func(t *Table, r *Region) error
	valid  bool // afterwards, by another key
}{
	{name: "deallocate", revoke: func(t *Table, r *Region) error { return t.Deallocate(r) }},
	{name: "invalidate", revoke: func(t *Table, r *Region) error {
		return faultErr(t.Invalidate(uint32(r.STag()), r.PD(), 0, false))
	}},
	{name: "remote invalidate", revoke: func(t *Table, r *Region) error {
		return faultErr(t.Invalidate(uint32(r.STag()), r.PD(), 0, true))
	}},
	{name: "reregister", valid: true, revoke: func(t *Table, r *Region) error {
		return t.Reregister(r, r.PD(), make([]byte, 256), RegionConfig{Access: r.Access(), Key: 1})
	}},
	{name: "failing reregister", revoke: func(t *Table, r *Region) error {
		if err := t.Reregister(r, r.PD(), nil, RegionConfig{Access: r.Access()}); !errors.Is(err, ErrLength) {
			return fmt.Errorf("%v, want %v", err, ErrLength)
		}
		return nil
	}},
	{name: "close", revoke: func(t *Table, r *Region) error { t.Close(); return nil }},
}

func faultErr(f ddp.Fault) error {
	if f != ddp.NoFault {
		return errors.New(f.String())
	}
	return nil
}

// Claims: DDP-8.3-2 DDP-8.3.1-4 R-8.1.1-4 D-10.3-2 V-7.2.2-1 V-7.3-1 V-7.9-1 V-7.9-2 DDP-8.3.1-6 R-8.1.1-6
// Claims: V-7.3.2.3-6 S-6.2.2-1 V-9.2.6.4-3
func TestRevocationWaitsForHoldersAndLetsNoneIn(t *testing.T) {
	for _, c := range revokers {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := NewTable(Config{})
				pd := table.AllocPD()
				r := register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead | LocalWrite | RemoteWrite})
				stag := uint32(r.STag())
				var first, second, third Holder
				for _, h := range []*Holder{&first, &second, &third} {
					h.Init(table, pd, 0)
				}
				for _, h := range []*Holder{&first, &second} {
					if _, fault := h.Resolve(nil, stag, 0, 8, RemoteWrite); fault != ddp.NoFault {
						t.Fatal(fault)
					}
				}

				done := make(chan error, 1)
				go func() { done <- c.revoke(table, r) }()
				synctest.Wait()
				// Even a holder gets no more: an STag in steady use has to end, too.
				for name, h := range map[string]*Holder{"holder": &first, "other": &third} {
					if fault := h.Check(stag, 0, 8, RemoteWrite); fault != ddp.FaultSTag {
						t.Errorf("%s checks while revocation waits: %v", name, fault)
					}
					if _, fault := h.Resolve(nil, stag, 0, 8, RemoteWrite); fault != ddp.FaultSTag {
						t.Errorf("%s resolves while revocation waits: %v", name, fault)
					}
				}
				first.Release()
				if first.Acquire() {
					t.Error("acquired while revocation waits")
				}
				synctest.Wait()
				select {
				case <-done:
					t.Fatal("returned while the memory is held")
				default:
				}
				if second.Acquire() { // which releases, too
					t.Error("kept while revocation waits")
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				if first.Acquire() || r.Valid() != c.valid {
					t.Error("valid afterwards")
				}
			})
		})
	}
}

// Claims: V-7.8-5
func TestAllRevokersWaitForHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := NewTable(Config{})
		pd := table.AllocPD()
		r := register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead | RemoteRead})
		var h Holder
		h.Init(table, pd, 0)
		if _, fault := h.Resolve(nil, uint32(r.STag()), 0, 8, LocalRead); fault != ddp.NoFault {
			t.Fatal(fault)
		}
		var returned atomic.Int32
		for _, revoke := range []func(){
			func() { table.Invalidate(uint32(r.STag()), pd, 0, false) },
			func() { table.Invalidate(uint32(r.STag()), pd, 0, true) },
			func() { _ = table.Deallocate(r) },
			func() { _ = table.Deallocate(r) },
			func() { table.Close() },
		} {
			go func() { revoke(); returned.Add(1) }()
			synctest.Wait() // so that each meets what the ones before it left
		}
		// Close finds no region any more: it was taken out by Deallocate, whose
		// caller waits.
		if n := returned.Load(); n > 1 {
			t.Errorf("%d returned while the memory is held", n)
		}
		h.Release()
		synctest.Wait()
		if n := returned.Load(); n != 5 {
			t.Errorf("%d of 5 returned", n)
		}
	})
}

// Claims: V-7.2.2-2 V-7.2.2-4 V-7.8-6 V-7.8-7 V-7.4.2-6 DDP-8.2-1 R-8.1.1-7
// Claims: V-7.2-4
func TestInvalidateChecksWhoAsks(t *testing.T) {
	table := NewTable(Config{})
	pd, other := table.AllocPD(), table.AllocPD()
	const rights = LocalRead | RemoteRead
	for _, c := range []struct {
		name    string
		cfg     RegionConfig
		flip    uint32 // bits of the STag changed
		pd      *PD
		stream  Stream
		remote  bool
		want    ddp.Fault
		invalid ddp.Fault // what an Invalid region answers
	}{
		{name: "local", cfg: RegionConfig{Access: rights}, pd: pd},
		{name: "local, region without remote rights", cfg: RegionConfig{Access: LocalRead}, pd: pd},
		{name: "remote", cfg: RegionConfig{Access: rights}, pd: pd, remote: true},
		{name: "of this stream", cfg: RegionConfig{Access: rights, Stream: 1}, pd: pd, stream: 1, remote: true},
		{name: "unknown", cfg: RegionConfig{Access: rights}, flip: 0x100, pd: pd, want: ddp.FaultSTag, invalid: ddp.FaultSTag},
		{name: "wrong key", cfg: RegionConfig{Access: rights}, flip: 1, pd: pd, want: ddp.FaultSTag},
		{name: "wrong key, before foreign", cfg: RegionConfig{Access: rights}, flip: 1, pd: other, want: ddp.FaultSTag, invalid: ddp.FaultAssociation},
		{name: "foreign domain", cfg: RegionConfig{Access: rights}, pd: other, want: ddp.FaultAssociation, invalid: ddp.FaultAssociation},
		{name: "foreign stream", cfg: RegionConfig{Access: rights, Stream: 2}, pd: pd, stream: 1, want: ddp.FaultAssociation, invalid: ddp.FaultAssociation},
		{name: "remote, region without remote rights", cfg: RegionConfig{Access: LocalRead}, pd: pd, remote: true, want: ddp.FaultAccess, invalid: ddp.FaultAccess},
		{name: "remote, remote rights allowed and not given", cfg: RegionConfig{Access: LocalRead, RemoteAccess: RemoteAllowed}, pd: pd, remote: true, want: ddp.FaultAccess},
		{name: "shared, local", cfg: RegionConfig{Access: rights, Shared: true}, pd: pd, want: ddp.FaultSTag, invalid: ddp.FaultSTag},
		{name: "shared, remote", cfg: RegionConfig{Access: rights, Shared: true}, pd: pd, remote: true, want: ddp.FaultAssociation, invalid: ddp.FaultAssociation},
		{name: "shared and foreign, local", cfg: RegionConfig{Access: rights, Shared: true}, pd: other, want: ddp.FaultAssociation, invalid: ddp.FaultAssociation},
		{name: "remote, foreign before rights", cfg: RegionConfig{Access: LocalRead}, pd: other, remote: true, want: ddp.FaultAssociation, invalid: ddp.FaultAssociation},
	} {
		r := register(t, table, pd, make([]byte, 8), c.cfg)
		stag := uint32(r.STag()) ^ c.flip
		if fault := table.Invalidate(stag, c.pd, c.stream, c.remote); fault != c.want {
			t.Errorf("%s: %v, want %v", c.name, fault, c.want)
		}
		if r.Valid() != (c.want != ddp.NoFault) {
			t.Errorf("%s: valid %v afterwards", c.name, r.Valid())
		}
		table.Invalidate(uint32(r.STag()), pd, c.cfg.Stream, false)
		if fault := table.Invalidate(stag, c.pd, c.stream, c.remote); fault != c.invalid {
			t.Errorf("%s, invalid already: %v, want %v", c.name, fault, c.invalid)
		}
	}
}

func TestRegionRegisteredAnewIsNotTheOneRemembered(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	old, fresh := make([]byte, 8), make([]byte, 8)
	r := register(t, table, pd, old, RegionConfig{Access: LocalRead, Key: 1})
	stag := uint32(r.STag())
	var h Holder
	h.Init(table, pd, 0)
	h.SetFrames(1, 1)
	_, _ = h.Resolve(nil, stag, 0, 8, LocalRead)
	h.Release()
	table.Invalidate(stag, pd, 0, false)
	// The same STag, valid again over other memory.
	if err := table.FastRegister(pd, 0, STag(stag), fresh, RegionConfig{Access: LocalRead}); err != nil {
		t.Fatal(err)
	}

	h.SetFrames(2, 2)
	pieces, fault := h.Resolve(nil, stag, 0, 8, LocalRead)
	if fault != ddp.NoFault || &pieces[0][0] != &fresh[0] {
		t.Errorf("resolved to the old memory, or not at all: %v", fault)
	}
	if h.Acquire() {
		t.Error("the frame that refers to the old memory may be written")
	}
	if _, frame, ok := h.Revoked(); !ok || frame != 1 {
		t.Errorf("frame %d ok %v, want 1", frame, ok)
	}
	h.Done(2)
	if !h.Acquire() {
		t.Error("the frame that refers to the new memory may not be written")
	}
	h.Forget()
}

// The race detector watches this test: the memory is written without any lock
// right after revocation, while streams were at work on it.
//
// Claims: DDP-8.3.1-6 R-8.1.1-6 S-6.2.2-1 V-7.9-1
func TestNoOctetMovesAfterRevocation(t *testing.T) {
	for _, c := range revokers {
		t.Run(c.name, func(t *testing.T) {
			for range 100 {
				revokeUnderTraffic(t, c.revoke)
			}
		})
	}
}

// revokeUnderTraffic runs two writers, as inbound data does, and two readers,
// as frames waiting to be written do, on a region, and revokes it.
func revokeUnderTraffic(t *testing.T, revoke func(*Table, *Region) error) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	counters, buf := words(32) // 256 octets
	r := register(t, table, pd, buf, RegionConfig{Access: LocalRead | LocalWrite | RemoteRead | RemoteWrite})
	c := register(t, table, pd, buf, RegionConfig{Access: LocalRead | LocalWrite | RemoteAtomic})
	stag := uint32(r.STag())

	var started, ended sync.WaitGroup
	for i := range 2 {
		started.Add(1)
		ended.Go(func() { // inbound: each writer has its half of the region
			started.Done()
			var h Holder
			h.Init(table, pd, 0)
			payload := bytes.Repeat([]byte{'w'}, 16)
			var pieces [][]byte
			for n := 0; ; n++ {
				var fault ddp.Fault
				pieces, fault = h.Resolve(pieces[:0], stag, uint64(124*i+n%7*16), 16, RemoteWrite)
				if fault != ddp.NoFault {
					h.Forget()
					return
				}
				copy(pieces[0], payload)
				if n%3 == 0 {
					h.Forget()
				}
				runtime.Gosched()
			}
		})
	}
	started.Add(1)
	ended.Go(func() { // atomic operations, where the writers do not write
		started.Done()
		var h Holder
		h.Init(table, pd, 0)
		for {
			if _, _, fault := h.Atomic(uint32(c.STag()), 248, func(v uint64) uint64 { return v + 1 }); fault != ddp.NoFault {
				return
			}
			runtime.Gosched()
		}
	})
	quiet := make([]byte, 256) // what the outbound side reads nobody writes
	q := register(t, table, pd, quiet, RegionConfig{Access: LocalRead})
	for range 2 {
		started.Add(1)
		ended.Go(func() { // outbound
			started.Done()
			var h Holder
			h.Init(table, pd, 0)
			pieces, fault := h.Resolve(nil, uint32(q.STag()), 0, 256, LocalRead)
			if fault != ddp.NoFault {
				return
			}
			h.Release()
			for h.Acquire() {
				sink.Add(uint32(pieces[0][7]))
				h.Release()
				runtime.Gosched()
			}
		})
	}
	started.Wait()
	runtime.Gosched()
	if err := revoke(table, r); err != nil {
		t.Fatal(err)
	}
	if err := table.Deallocate(c); err != nil && !errors.Is(err, ErrRegion) {
		t.Fatal(err)
	}
	for i := range buf {
		buf[i] = 'o' // the owner's again
	}
	if err := table.Deallocate(q); err != nil && !errors.Is(err, ErrRegion) {
		t.Fatal(err)
	}
	for i := range quiet {
		quiet[i] = 'o'
	}
	ended.Wait()
	if !bytes.Equal(buf, bytes.Repeat([]byte{'o'}, 256)) || counters[31] != 0x6f6f6f6f6f6f6f6f {
		t.Fatal("an octet was written after revocation")
	}
}

// sink keeps reads from being optimised away.
var sink atomic.Uint32
