package main

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/weft-rdma/weft/origin"
)

// This file is what the two ends of an rc connection know of each other, and when a
// request is the peer's: it names both numbers, comes from the peer's GID to this end's,
// and has the first PSNs that the programs told each other, as far as they are known.

// A peering is how a queue pair finds its peer. Its fields are the queue pair's mu's.
type peering struct {
	local, peer netip.Addr
	dest        uint32
	addressed   bool // local, peer and dest are known
	sendPSN     uint32
	recvPSN     uint32
	ready       bool        // RTS was entered: sendPSN is known
	begun       bool        // it dials, or a request was accepted
	sent        uint64      // requests to send before RTS
	patience    *time.Timer // of the end that listens: how long its sends wait for the peer
	news        int         // how often the program has said more
	cancel      func()
	guesses     guesses
}

// A greeting is the private data of a request.
type greeting struct {
	from, to         uint32
	sendPSN, recvPSN uint32
	knowsSend        bool
	retries          uint8 // of a message that finds no receive
}

const greetingLength = 24

var greetingMagic = [4]byte{'w', 'e', 'f', 't'}

func (g *greeting) append(b []byte) []byte {
	b = append(b, greetingMagic[:]...)
	flags := uint32(retriesForEver-g.retries) << 8
	if g.knowsSend {
		flags |= 1
	}
	for _, v := range [...]uint32{flags, g.from, g.to, g.sendPSN, g.recvPSN} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func (g *greeting) parse(b []byte) bool {
	if len(b) != greetingLength || [4]byte(b) != greetingMagic {
		return false
	}
	at := func(i int) uint32 { return binary.BigEndian.Uint32(b[4*i:]) }
	*g = greeting{knowsSend: at(1)&1 != 0, retries: retriesForEver - uint8(at(1)>>8)%8, from: at(2), to: at(3), sendPSN: at(4), recvPSN: at(5)}
	return true
}

// A verdict is what a request is to a queue pair.
type verdict int

const (
	isStranger verdict = iota // it is not the peer's, or there is a connection already
	isEarly                   // the program has not said enough yet
	isPeer
)

// judge judges a request that came from one address to another.
func (p *peering) judge(g *greeting, from, to netip.Addr, share origin.Share, now time.Time) verdict {
	switch {
	case !p.addressed:
		return isEarly
	case p.begun, g.from != p.dest, from != p.peer, to != p.local:
		return isStranger
	case !p.ready && !g.knowsSend:
		return isEarly // there is no PSN that both know
	case !p.guesses.allow(share, now):
		return isStranger
	case p.ready && g.recvPSN != p.sendPSN, g.knowsSend && g.sendPSN != p.recvPSN:
		p.guesses.wrong(share, now)
		return isStranger
	}
	return isPeer
}

// guesses limits how often somebody may be wrong about the PSNs: a PSN has 24 bits, and
// a stranger may use the peer's address if it is on the peer's machine. The limit is for
// each share, so that one cannot use up another's. The peer itself is never wrong; if it
// is of the share of somebody who guesses it gets through by asking again.
type guesses map[origin.Share]*guessed

// guessed is how often a share has been wrong since a time.
type guessed struct {
	since time.Time
	wrong int
}

const (
	mostGuesses  = 32          // in guessesEvery
	guessesEvery = time.Second // all 2^24 take six days
	mostGuessers = 64          // shares that are remembered
)

// allow reports whether a share may be wrong once more.
func (g guesses) allow(share origin.Share, now time.Time) bool {
	by := g[share]
	if by == nil {
		return len(g) < mostGuessers || g.forget(now)
	}
	return by.wrong < mostGuesses || now.Sub(by.since) >= guessesEvery
}

// wrong notes that a share was.
func (g *guesses) wrong(share origin.Share, now time.Time) {
	if *g == nil {
		*g = guesses{}
	}
	by := (*g)[share]
	if by == nil || now.Sub(by.since) >= guessesEvery {
		by = &guessed{since: now}
		(*g)[share] = by
	}
	by.wrong++
}

// forget makes room by what is long ago, and reports whether there is some.
func (g guesses) forget(now time.Time) bool {
	for share, by := range g {
		if now.Sub(by.since) >= guessesEvery {
			delete(g, share)
		}
	}
	return len(g) < mostGuessers
}
