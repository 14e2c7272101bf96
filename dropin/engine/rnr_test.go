package main

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weft-rdma/weft/verbs"
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

// Of a message that has found no receive for its time the program at the receiver is told
// nothing, as on a device.
func TestAMessageWithoutAReceiveIsNoEvent(t *testing.T) {
	anEngine(t, true)
	b := newBed(t)
	sends, receives := b.newQP(), b.newQP()
	sends.ready(t, attributes{dest: receives.number})
	receives.ready(t, attributes{dest: sends.number})
	sends.awaitStream(t)
	sends.request(0, 1, 1, 0)
	atomic.AddUint64((*uint64)(&sends.sends.queue.tail), 1)
	sends.takeSends()
	ended := func() bool { s := receives.qp.State(); return s != verbs.RTS && s != verbs.Idle }
	for end := time.Now().Add(time.Minute); !ended(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("the message still waits")
		}
	}
	receives.destroy(t) // what was raised has been before
	if n, _ := syscall.Read(b.events[0], make([]byte, 8)); n > 0 {
		t.Errorf("%d events were raised", n)
	}
}
