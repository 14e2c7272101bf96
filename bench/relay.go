// The relay that makes a path long: a process that carries each octet between two
// connections of loopback, and hands it on a while after it came.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"
)

// relayDelay is how late octets are handed on, in either direction: half of the path's time.
const relayDelay = 10 * time.Millisecond

// What is on its way in one direction is bounded, as on any path: relayChunks reads of up to
// relayChunk octets.
const (
	relayChunk  = 256 << 10
	relayChunks = 512
)

// relayVariable in the environment is where a relay connects to.
const relayVariable = "WEFT_BENCH_RELAY"

// A relay is its process as the initiator sees it.
type relay struct {
	cmd   *exec.Cmd
	stdin io.Closer
	addr  string // that it listens at
}

// startRelay starts a relay to addr.
func startRelay(ctx context.Context, addr string) (*relay, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := &relay{cmd: exec.CommandContext(ctx, self)}
	r.cmd.Env = append(os.Environ(), peerVariable+"="+relayRole, relayVariable+"="+addr)
	r.cmd.Stderr = os.Stderr
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := fmt.Fscanln(out, &r.addr); err != nil {
		return nil, errors.Join(fmt.Errorf("the relay does not say where it listens: %w", err), r.close())
	}
	return r, nil
}

// close ends the process, which is idle or has lost its connections.
func (r *relay) close() error {
	return errors.Join(r.stdin.Close(), r.cmd.Wait())
}

// runRelay is the whole of the relay's process. It ends with its standard input.
func runRelay(in io.Reader, out io.Writer) error {
	ln, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return err
	}
	go serveRelay(ln, os.Getenv(relayVariable), relayDelay)
	fmt.Fprintln(out, ln.Addr())
	_, err = io.Copy(io.Discard, in)
	return err
}

// serveRelay carries what comes over ln to addr, and back.
func serveRelay(ln net.Listener, addr string, delay time.Duration) {
	for {
		near, err := ln.Accept()
		if err != nil {
			return
		}
		go func() {
			far, err := net.Dial("tcp", addr)
			if err != nil {
				near.Close()
				return
			}
			var both sync.WaitGroup
			both.Go(func() { carry(far.(*net.TCPConn), near.(*net.TCPConn), delay) })
			both.Go(func() { carry(near.(*net.TCPConn), far.(*net.TCPConn), delay) })
			both.Wait()
			near.Close()
			far.Close()
		}()
	}
}

// A parcel is octets and when they may be handed on.
type parcel struct {
	octets []byte
	due    time.Time
}

// carry hands what from has to to, the end of the stream too, each octet late.
func carry(to, from *net.TCPConn, delay time.Duration) {
	road, empty := make(chan parcel, relayChunks), make(chan []byte, relayChunks)
	go func() {
		defer close(road)
		for {
			var buf []byte
			select {
			case buf = <-empty:
			default:
				buf = make([]byte, relayChunk)
			}
			n, err := from.Read(buf)
			if n > 0 {
				road <- parcel{buf[:n], time.Now().Add(delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range road {
		time.Sleep(time.Until(p.due))
		if _, err := to.Write(p.octets); err != nil {
			from.CloseRead() // and what is on its way is lost
			for range road {
			}
			return
		}
		select {
		case empty <- p.octets[:cap(p.octets)]:
		default:
		}
	}
	to.CloseWrite()
}
