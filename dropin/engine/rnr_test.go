package main

import (
	"testing"
	"time"
)

func TestAMessageWaitsForAsLongAsItsRetriesTake(t *testing.T) {
	for _, tt := range []struct {
		retries, timer uint8
		want           time.Duration
	}{
		{7, 12, -1},
		{0, 12, 0},
		{1, 0, 655360 * time.Microsecond},
		{6, 0, 6 * 655360 * time.Microsecond},
		{6, 31, 6 * 491520 * time.Microsecond},
		{3, 22, 3 * 20480 * time.Microsecond},
		{1, 1, leastPause}, // 10 microseconds
	} {
		if got := pauseFor(tt.retries, tt.timer); got != tt.want {
			t.Errorf("%d retries, timer %d: %v, expected %v", tt.retries, tt.timer, got, tt.want)
		}
	}
}

func TestThePatientWaitWithoutEnd(t *testing.T) {
	options.patient = true
	defer func() { options.patient = false }()
	for _, retries := range []uint8{0, 1, 7} {
		if got := pauseFor(retries, 12); got >= 0 {
			t.Errorf("%d retries: %v", retries, got)
		}
	}
}

func TestAGreetingTellsTheRetries(t *testing.T) {
	for _, g := range []greeting{
		{from: 0x123456, to: 0xabcdef, sendPSN: 1, recvPSN: 2, knowsSend: true, retries: 0},
		{from: 1, to: 2, sendPSN: 3, recvPSN: 0xffffff, knowsSend: true, retries: 6},
		{from: 1, to: 2, retries: retriesForEver},
	} {
		var got greeting
		if !got.parse(g.append(nil)) || got != g {
			t.Errorf("%+v becomes %+v", g, got)
		}
	}
	if new(greeting).parse([]byte("weft")) {
		t.Error("a greeting that is cut short is taken")
	}
}
