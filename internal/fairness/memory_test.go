package fairness

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/origin"
)

// A fakeDebtor gives its memory back when it is evicted.
type fakeDebtor struct {
	a      *Account
	mu     sync.Mutex
	stake  Stake
	has    int
	since  time.Time // of idleness; zero: it goes on
	why    error
	leaves bool
}

func (d *fakeDebtor) Stake() Stake {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.stake
	if !d.since.IsZero() {
		s.Idle = time.Since(d.since)
	}
	return s
}

func (d *fakeDebtor) Evict(why error) (gone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.why = why
	if d.leaves {
		go d.a.Release(d.has)
	}
	return false
}

func (d *fakeDebtor) take(n int, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	err := d.a.Acquire(ctx, n, false)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.has += n
	}
	return err
}

func debtor(m *Memory, share origin.Share, stake Stake) *fakeDebtor {
	d := &fakeDebtor{stake: stake, leaves: true}
	if stake.Theirs {
		d.since = time.Now()
	}
	d.a = m.Open(share, Unlimited, d)
	return d
}

const mib = 1 << 20

func TestMemoryIsNeverExceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(16 * mib)
		var all sync.WaitGroup
		for range 50 {
			d := debtor(m, attacker, Stake{})
			all.Go(func() {
				for _, n := range []int{mib, 100, 5 * mib} {
					if err := d.a.Acquire(t.Context(), n, false); err != nil {
						t.Error(err)
					}
					if used := m.Used(); used > 16*mib {
						t.Errorf("%d octets are out", used)
					}
					time.Sleep(time.Millisecond)
					d.a.Release(n)
				}
				d.a.Close()
			})
		}
		all.Wait()
		if m.Used() != 0 || len(m.accounts) != 0 || len(m.shares) != 0 {
			t.Errorf("%d octets, %d accounts and %d shares are left", m.Used(), len(m.accounts), len(m.shares))
		}
	})
}

// However much one share leaves lying, others have memory at once, and so do
// short messages of its own; long ones within a second.
func TestNobodyWaitsForWhoLeavesMemoryLying(t *testing.T) {
	for _, tt := range []struct {
		name  string
		share origin.Share
		n     int
		most  time.Duration
	}{
		{"another share", honest, mib, 0},
		{"another share, little", honest, 4096, 0},
		{"the same, little", attacker, 4096, 0},
		{"the same, much", attacker, mib, 3 * time.Second},
		{"another share, more than is free", honest, 6 * mib, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := NewMemory(16 * mib)
				for range 100 {
					d := debtor(m, attacker, Stake{Theirs: true})
					go d.take(mib, time.Hour)
				}
				synctest.Wait()
				if used := m.Used(); used != 12*mib {
					t.Errorf("%d octets are out, want three quarters", used)
				}
				d := debtor(m, tt.share, Stake{})
				began := time.Now()
				if err := d.take(tt.n, 10*time.Second); err != nil || time.Since(began) > tt.most {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				time.Sleep(time.Hour)
			})
		})
	}
}

func TestThoseWhoGoOnAreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(16 * mib)
		var busy []*fakeDebtor
		for range 12 {
			d := debtor(m, honest, Stake{Theirs: true})
			d.since = time.Time{}
			if err := d.take(mib, time.Second); err != nil {
				t.Fatal(err)
			}
			busy = append(busy, d)
		}
		d := debtor(m, honest, Stake{})
		if err := d.take(2*mib, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got memory of connections that make progress: %v", err)
		}
		if i := slices.IndexFunc(busy, func(d *fakeDebtor) bool { return d.why != nil }); i >= 0 {
			t.Errorf("%v", busy[i].why)
		}
		busy[0].a.Release(2 * mib)
		if err := d.take(2*mib, 0); err != nil {
			t.Errorf("not given what is there: %v", err)
		}
	})
}

// The parts of messages that all wait for the rest of their memory give way to one
// of them.
func TestThoseWhoWaitForEachOtherGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(mib)
		var all []*fakeDebtor
		var done sync.WaitGroup
		finished := 0
		for range 8 {
			d := debtor(m, attacker, Stake{Stuck: true})
			if err := d.take(64<<10, time.Second); err != nil {
				t.Fatal(err)
			}
			all = append(all, d)
		}
		for _, d := range all {
			done.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if d.a.Acquire(ctx, 700<<10, true) != nil {
					return
				}
				d.mu.Lock()
				evicted := d.why != nil
				d.mu.Unlock()
				d.a.Release(700 << 10)
				if !evicted {
					finished++
					d.a.Release(64 << 10)
				}
			})
		}
		done.Wait()
		if finished == 0 {
			t.Error("nobody came to an end")
		}
	})
}

func TestUnlimitedIsNoLimit(t *testing.T) {
	m := NewMemory(Unlimited)
	d := debtor(m, honest, Stake{})
	for _, n := range []int{1, Tiny, Tiny + 1, Small, Small + 1, 1 << 30} {
		if !d.a.TryAcquire(n, false) {
			t.Errorf("there is no room for %d octets", n)
		}
	}
}

func TestAMessageLongerThanTheMemoryIsTakenAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(1000)
		a, b := debtor(m, attacker, Stake{}), debtor(m, honest, Stake{})
		if err := a.take(2000, time.Second); err != nil {
			t.Error(err)
		}
		if err := b.take(1, time.Second); err == nil {
			t.Error("a second message was taken beside it")
		}
		a.a.Release(2000)
		if err := b.take(1, 0); err != nil {
			t.Error(err)
		}
	})
}

func TestAnAccountHasNoMoreThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(1 << 30)
		d := &fakeDebtor{}
		d.a = m.Open(honest, 1000, d)
		if err := d.take(900, time.Second); err != nil {
			t.Error(err)
		}
		if err := d.take(200, time.Minute); err == nil {
			t.Error("got more")
		}
		if !d.a.TryAcquire(100, false) || d.a.TryAcquire(1, false) {
			t.Error("TryAcquire has another limit")
		}
		if err := d.a.Acquire(t.Context(), 200, true); err != nil {
			t.Errorf("a message that has begun is not finished: %v", err)
		}
		granted := make(chan bool)
		cancel := d.a.Request(10, func() { close(granted) })
		d.a.Release(1200)
		<-granted
		if cancel() {
			t.Error("called off what was given")
		}
		if d.why != nil {
			t.Errorf("evicted: %v", d.why)
		}
	})
}

// Memory that others leave lying is not taken from them for a share that has more.
func TestWhoHasLessIsNotEvictedForWhoHasMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(16 * mib)
		small := debtor(m, honest, Stake{Theirs: true})
		large := debtor(m, attacker, Stake{})
		if err := errors.Join(small.take(mib, time.Second), large.take(11*mib, time.Second)); err != nil {
			t.Fatal(err)
		}
		more := debtor(m, attacker, Stake{})
		if err := more.take(3*mib, time.Minute); err == nil {
			t.Error("got more than three quarters of what the other leaves")
		}
		if small.why != nil {
			t.Errorf("evicted: %v", small.why)
		}
	})
}

// A share that takes what it is sent, but has nearly everything, loses some of it
// when another waits.
func TestTheLargestShareGivesWayToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(16 * mib)
		for range 12 {
			d := debtor(m, attacker, Stake{Theirs: true})
			d.since = time.Time{}
			if err := d.take(mib, time.Second); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		if err := debtor(m, honest, Stake{}).take(5*mib, time.Minute); err != nil || time.Since(began) > time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
