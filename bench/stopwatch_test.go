package main

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestWarmupIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := newStopwatch(Job{Warmup: time.Second, Sample: 10 * time.Second})
		for !run.over() {
			time.Sleep(500 * time.Millisecond)
			run.add(1)
		}
		time.Sleep(time.Second) // until the last message is known to be in place
		got := run.stop()
		want := Sample{Messages: 20, Total: 22, Elapsed: 11 * time.Second}
		if got != want {
			t.Errorf("sample = %+v, want %+v", got, want)
		}
	})
}

func TestALateLookAtTheClockStillCountsTheWholeSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := newStopwatch(Job{Warmup: time.Second, Sample: time.Second})
		run.add(1)
		time.Sleep(5 * time.Second) // one message took longer than all the time there was
		if run.over() {
			t.Fatal("over before anything was counted")
		}
		run.add(1)
		time.Sleep(time.Second)
		if !run.over() {
			t.Fatal("not over after the sample's length")
		}
		if got := run.stop(); got.Messages != 1 || got.Elapsed != time.Second {
			t.Errorf("sample = %+v, want 1 message in 1s", got)
		}
	})
}

func TestPercentilesAreOfTheRoundTrip(t *testing.T) {
	run := &stopwatch{counting: true}
	trips := newTrips()
	for i := range 100 {
		trips.add(run, time.Duration(100-i)*time.Microsecond)
	}
	want := [4]time.Duration{50 * time.Microsecond, 90 * time.Microsecond, 99 * time.Microsecond, 100 * time.Microsecond}
	if got := trips.percentiles(); got != want {
		t.Errorf("percentiles = %v, want %v", got, want)
	}
}

func TestTripsOfTheWarmupAreNotCollected(t *testing.T) {
	trips := newTrips()
	trips.add(&stopwatch{}, time.Second)
	if len(trips.took) != 0 {
		t.Error("a trip of the warm-up was collected")
	}
}

func TestCollectingTripsDoesNotAllocate(t *testing.T) {
	run := &stopwatch{counting: true}
	trips := newTrips()
	if n := testing.AllocsPerRun(1000, func() { trips.add(run, time.Microsecond) }); n != 0 {
		t.Errorf("%v allocations a trip", n)
	}
}
