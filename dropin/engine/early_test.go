package main

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// asked counts what becomes of requests.
type asked struct{ judged, rejected atomic.Int32 }

func (a *asked) add(e *earlyRequests, number uint32) {
	e.add(number, shareOf(here), func() { a.judged.Add(1) }, func() { a.rejected.Add(1) })
}

func TestEarlyRequestsAreJudgedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEarlyRequests(10, time.Second)
		var one, two asked
		one.add(e, 1)
		one.add(e, 1)
		two.add(e, 2)
		e.retry(1)
		synctest.Wait()
		if one.judged.Load() != 2 || two.judged.Load() != 0 || e.places.Len() != 1 {
			t.Errorf("%d and %d were judged, %d wait", one.judged.Load(), two.judged.Load(), e.places.Len())
		}
		e.drop(2)
		synctest.Wait()
		if two.rejected.Load() != 1 || e.places.Len() != 0 {
			t.Errorf("%d were rejected, %d wait", two.rejected.Load(), e.places.Len())
		}
	})
}

func TestEarlyRequestsDoNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEarlyRequests(10, time.Second)
		var a asked
		a.add(e, 1)
		time.Sleep(time.Second - 1)
		synctest.Wait()
		if a.rejected.Load() != 0 {
			t.Error("it was rejected before its time")
		}
		time.Sleep(1)
		synctest.Wait()
		if a.rejected.Load() != 1 || e.places.Len() != 0 || len(e.byNumber) != 0 {
			t.Errorf("%d were rejected, %d have places", a.rejected.Load(), e.places.Len())
		}
	})
}

// TestEarlyRequestsHaveFewPlaces has one share ask for more than there are, then another.
func TestEarlyRequestsHaveFewPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 8
		e := newEarlyRequests(places, time.Hour)
		var flood, other asked
		for i := range 100 {
			flood.add(e, uint32(i))
			time.Sleep(time.Millisecond)
		}
		if n := flood.rejected.Load(); n != 100-places || len(e.byNumber) != places {
			t.Errorf("%d were rejected, %d wait, expected %d", n, len(e.byNumber), places)
		}
		e.add(7, shareOf(there), func() { other.judged.Add(1) }, func() { other.rejected.Add(1) })
		for i := range 100 {
			flood.add(e, uint32(i))
			time.Sleep(time.Millisecond)
		}
		e.retry(7)
		synctest.Wait()
		if other.judged.Load() != 1 || other.rejected.Load() != 0 {
			t.Error("one share's requests drove out another's")
		}
		for number := range e.byNumber {
			e.drop(number)
		}
	})
}
