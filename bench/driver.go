// Drivers: how a peer does its part of a sample, at either end.

package main

import "context"

// A driver makes a peer do samples.
type driver interface {
	// offer prepares the initiator's memory and says what the target must know
	// of it.
	offer(job Job) []Remote

	// prepare makes the target ready up to its listening socket.
	prepare(ctx context.Context, job Job) (Ready, serve, error)

	// initiate connects and is the active end.
	initiate(ctx context.Context, job Job, ready Ready) (Sample, error)

	// verify checks at the target, after serve, what so many messages have left
	// there.
	verify(job Job, messages uint64) error
}

// A serve does the target's part of a sample and returns when the initiator has
// ended, which it notices by the connections; those who do not are told by over,
// that is closed then.
type serve func(over <-chan struct{}) (Served, error)

// An end is what a process needs to take either part in samples.
type end struct {
	weft  *weftEnd
	files map[Peer]*fileDriver
}

func newEnd() (*end, error) {
	w, err := newWeftEnd()
	if err != nil {
		return nil, err
	}
	e := &end{weft: w, files: map[Peer]*fileDriver{}}
	for _, p := range []Peer{WeftRDMA, WeftTCP, GoNFS} {
		e.files[p] = &fileDriver{rnic: w.rnic, peer: p}
	}
	return e, nil
}

func (e *end) close() error { return e.weft.close() }

// driver returns the driver of p.
func (e *end) driver(p Peer) driver {
	switch p {
	case Weft:
		return e.weft
	case WeftRDMA, WeftTCP, GoNFS:
		return e.files[p]
	case TCPGo:
		return tcpDriver{}
	case GRPC:
		return grpcDriver{}
	case Perftest:
		return perftest{}
	case GoMap:
		return goMap{}
	case Before:
		return before{}
	}
	return program{}
}

// unverified is for drivers whose ends look after the data themselves and have
// no memory to offer.
type unverified struct{}

func (unverified) offer(Job) []Remote       { return nil }
func (unverified) verify(Job, uint64) error { return nil }
