package main

import (
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// This file makes up what strangers may send to the rc persona: anybody can connect to the
// port of a queue pair.

// FuzzVerdict has a queue pair judge private data. What is taken for the peer's says all
// that the peer knows.
func FuzzVerdict(f *testing.F) {
	const from, number, sendPSN, recvPSN = 0x123401, 0x567802, 0xABC, 0xDEF
	f.Add(greet(from, number, recvPSN, sendPSN, true), true)
	f.Add(greet(from, number, recvPSN, sendPSN, false), true)
	f.Add(greet(from, number, recvPSN, sendPSN, true), false)
	f.Add(greet(0, number, recvPSN, sendPSN, true), true)
	f.Add([]byte("weft"), true)
	peer, here := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	f.Fuzz(func(t *testing.T, data []byte, ready bool) {
		var g greeting
		if !g.parse(data) {
			return
		}
		if len(data) != greetingLength || g.retries > retriesForEver {
			t.Fatalf("%x is %+v", data, g)
		}
		p := peering{local: here, peer: peer, dest: from, addressed: true, sendPSN: sendPSN, recvPSN: recvPSN, ready: ready}
		knows := (!ready || g.recvPSN == sendPSN) && (!g.knowsSend || g.sendPSN == recvPSN) && (ready || g.knowsSend)
		v := p.judge(&g, peer, here, shareOf(peer), time.Now())
		if is := v == isPeer; is != (g.from == from && knows) {
			t.Errorf("%+v, ready %v: verdict %d", g, ready, v)
		}
		if v := p.judge(&g, here, here, shareOf(here), time.Now()); v != isStranger {
			t.Errorf("%+v from another address: verdict %d", g, v)
		}
	})
}

// FuzzNumber looks for queue pairs by numbers that nobody has given out, among some that are.
func FuzzNumber(f *testing.F) {
	f.Add(uint32(0), uint8(3))
	f.Add(uint32(0xFFFFFFFF), uint8(0))
	f.Fuzz(func(t *testing.T, number uint32, n uint8) {
		defer func(was []*numberedPort) { ports.all = was }(ports.all)
		ports.all = []*numberedPort{{port: uint16(number >> 8)}, {port: 1}}
		var all []uint32
		for range int(n) + 1 {
			q := &queuePair{}
			made, err := newNumber(q)
			if err != nil || ofNumber(made) != q || slices.Contains(all, made) {
				t.Fatalf("number %#x: %v", made, err)
			}
			all = append(all, made)
		}
		if q := ofNumber(number); (q != nil) != slices.Contains(all, number) {
			t.Errorf("%#x is %p; there are %#x", number, q, all)
		}
		freeNumber(number)
		freeNumber(number) // a second time changes nothing
		if ofNumber(number) != nil || ports.all[0].used < 0 || ports.all[1].used < 0 {
			t.Errorf("%#x is there after it was freed", number)
		}
	})
}

// FuzzEarlyRequests makes up the order of requests, of what programs say, and of time. Each
// request is judged or rejected, once, and no more wait than there are places.
func FuzzEarlyRequests(f *testing.F) {
	f.Add([]byte{0, 1, 2, 0x40, 0x80, 0xC0})
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0xC1, 0x41, 0, 0x40})
	shares := [2]netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1")}
	f.Fuzz(func(t *testing.T, steps []byte) {
		synctest.Test(t, func(t *testing.T) {
			const places = 4
			e := newEarlyRequests(places, time.Second)
			var ends []*atomic.Int32
			for _, step := range steps {
				number := uint32(step & 3)
				switch step >> 6 {
				case 0:
					end := new(atomic.Int32)
					ends = append(ends, end)
					e.add(number, shareOf(shares[step>>2&1]), func() { end.Add(1) }, func() { end.Add(1) })
				case 1:
					e.retry(number)
				case 2:
					e.drop(number)
				case 3:
					time.Sleep(time.Duration(step&0x3F) * 50 * time.Millisecond)
				}
				synctest.Wait()
				e.mu.Lock()
				waiting := 0
				for _, all := range e.byNumber {
					waiting += len(all)
				}
				e.mu.Unlock()
				if waiting > places || waiting != e.places.Len() {
					t.Fatalf("%d wait, in %d places", waiting, e.places.Len())
				}
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			for i, end := range ends {
				if n := end.Load(); n != 1 {
					t.Errorf("request %d was answered %d times", i, n)
				}
			}
		})
	})
}
