package main

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-rdma/weft/origin"
)

func TestAGreetingIsReadAsItWasWritten(t *testing.T) {
	want := greeting{from: 0x123456, to: 0xFFFFFF, sendPSN: 1, recvPSN: 0xABCDEF, knowsSend: true, retries: retriesForEver}
	octets := want.append(nil)
	if golden := greet(0x123456, 0xFFFFFF, 1, 0xABCDEF, true); !bytes.Equal(octets, golden) {
		t.Errorf("% x, expected % x", octets, golden)
	}
	var got greeting
	if !got.parse(octets) || got != want {
		t.Errorf("%+v, expected %+v", got, want)
	}
	for n := range octets {
		if got.parse(octets[:n]) {
			t.Errorf("%d octets are a greeting", n)
		}
	}
	if got.parse(append(octets, 0)) {
		t.Error("an octet more is no greeting")
	}
}

func FuzzGreeting(f *testing.F) {
	f.Add(greet(1, 2, 3, 4, true))
	f.Add(greet(0, 0, 0, 0, false))
	f.Add([]byte("weft"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		var g, again greeting
		if !g.parse(data) {
			return
		}
		if !again.parse(g.append(nil)) || again != g {
			t.Errorf("%+v becomes %+v", g, again)
		}
	})
}

var (
	here, there = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	elsewhereIP = netip.MustParseAddr("192.0.2.3")
)

func shareOf(a netip.Addr) origin.Share {
	return (&origin.Origin{Addr: netip.AddrPortFrom(a, 1)}).Share()
}

// TestARequestIsJudgedByAllThatIsKnown goes through what can be wrong, in each state of the
// queue pair.
func TestARequestIsJudgedByAllThatIsKnown(t *testing.T) {
	ready := peering{local: here, peer: there, dest: 7, addressed: true, sendPSN: 0xA, recvPSN: 0xB, ready: true}
	rtr, taken := ready, ready
	rtr.ready, rtr.sendPSN, taken.begun = false, 0, true
	right := greeting{from: 7, sendPSN: 0xB, recvPSN: 0xA, knowsSend: true}
	with := func(change func(*greeting)) greeting { g := right; change(&g); return g }
	for _, c := range []struct {
		what     string
		p        peering
		g        greeting
		from, to netip.Addr
		want     verdict
	}{
		{"the peer", ready, right, there, here, isPeer},
		{"the peer, that does not know its own PSN", ready, with(func(g *greeting) { g.knowsSend, g.sendPSN = false, 0 }), there, here, isPeer},
		{"the peer, this end's PSN unknown", rtr, right, there, here, isPeer},
		{"both own PSNs unknown", rtr, with(func(g *greeting) { g.knowsSend = false }), there, here, isEarly},
		{"before the peer is known", peering{}, right, there, here, isEarly},
		{"connected already", taken, right, there, here, isStranger},
		{"another number", ready, with(func(g *greeting) { g.from = 8 }), there, here, isStranger},
		{"another number, which is early", rtr, with(func(g *greeting) { g.from, g.knowsSend = 8, false }), there, here, isStranger},
		{"from another address", ready, right, elsewhereIP, here, isStranger},
		{"to another address", ready, right, there, elsewhereIP, isStranger},
		{"another first PSN", ready, with(func(g *greeting) { g.sendPSN = 1 }), there, here, isStranger},
		{"another second PSN", ready, with(func(g *greeting) { g.recvPSN = 1 }), there, here, isStranger},
		{"another second PSN, the first unknown", ready, with(func(g *greeting) { g.recvPSN, g.knowsSend = 1, false }), there, here, isStranger},
		{"another first PSN, this end's unknown", rtr, with(func(g *greeting) { g.sendPSN = 1 }), there, here, isStranger},
	} {
		if got := c.p.judge(&c.g, c.from, c.to, shareOf(c.from), time.Now()); got != c.want {
			t.Errorf("%s: %d, expected %d", c.what, got, c.want)
		}
	}
}

// TestGuessesOfPSNsAreLimited counts how many guesses are looked at in a second, and who
// suffers from them.
func TestGuessesOfPSNsAreLimited(t *testing.T) {
	p := peering{local: here, peer: there, dest: 7, addressed: true, sendPSN: 0xABCDEF, ready: true}
	wrong, right := greeting{from: 7}, greeting{from: 7, recvPSN: 0xABCDEF}
	guesser, other := shareOf(there), shareOf(elsewhereIP)
	now := time.Unix(1000, 0)
	if p.judge(&right, there, here, guesser, now) != isPeer {
		t.Error("before any guess the peer is refused")
	}
	for range 1000 {
		wrong.recvPSN++
		p.judge(&wrong, there, here, guesser, now)
	}
	if p.judge(&right, there, here, guesser, now) != isStranger {
		t.Error("guesses beyond the limit are looked at")
	}
	if p.judge(&right, there, here, other, now) != isPeer {
		t.Error("one share's guesses keep out another")
	}
	if p.judge(&right, there, here, guesser, now.Add(guessesEvery)) != isPeer {
		t.Error("the limit lasts")
	}
	// In time T no more than so many were looked at.
	looked := 0
	for i := range 10_000 {
		at := now.Add(time.Duration(i) * time.Millisecond)
		before := p.guesses[guesser].wrong
		p.judge(&wrong, there, here, guesser, at)
		if p.guesses[guesser].wrong != before {
			looked++
		}
	}
	if most := 11 * mostGuesses; looked > most {
		t.Errorf("in ten seconds %d guesses were looked at, expected at most %d", looked, most)
	}
}

func TestGuessersAreForgotten(t *testing.T) {
	var g guesses
	now := time.Unix(1000, 0)
	share := func(i int) origin.Share { return shareOf(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})) }
	for i := range 10 * mostGuessers {
		if g.allow(share(i), now) {
			g.wrong(share(i), now)
		}
	}
	if len(g) != mostGuessers {
		t.Errorf("%d shares are remembered, expected %d", len(g), mostGuessers)
	}
	if later := now.Add(guessesEvery); !g.allow(share(5000), later) || len(g) != 0 {
		t.Errorf("%d shares are remembered when their time is over", len(g))
	}
}
