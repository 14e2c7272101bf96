// Plain TCP in Go: what a careful Go program does without RDMA. A stream is
// one Write a message (or 64 KiB gathered) against bulk Reads; a ping-pong is
// one Write and one whole message read at either end.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// endOfStream turns a read of nothing into io.EOF.
func endOfStream(n int) error {
	if n == 0 {
		return io.EOF
	}
	return nil
}

// A tcpDriver does samples with the net package.
type tcpDriver struct{ unverified }

func (tcpDriver) prepare(ctx context.Context, job Job) (ready Ready, do serve, err error) {
	ln, err := listen(ctx, job)
	if err != nil {
		return ready, nil, err
	}
	do = func(<-chan struct{}) (Served, error) {
		defer ln.Close()
		nc, err := accept(ctx, ln)
		if err != nil {
			return Served{}, err
		}
		defer closeWhenDone(ctx, nc)()
		if job.Workload.Shape == PingPong {
			return Served{}, tcpPong(nc, job)
		}
		c, err := job.Workload.accepted(ctx, nc)
		if err != nil {
			return Served{}, err
		}
		return Served{}, tcpSink(c, job)
	}
	return Ready{Addr: ln.Addr().String()}, do, nil
}

func (tcpDriver) initiate(ctx context.Context, job Job, ready Ready) (Sample, error) {
	nc, err := dialReady(ctx, job, ready)
	if err != nil {
		return Sample{}, err
	}
	defer closeWhenDone(ctx, nc)()
	if job.Workload.Shape == PingPong {
		return tcpPing(nc, job)
	}
	c, err := job.Workload.dialled(ctx, nc)
	if err != nil {
		return Sample{}, err
	}
	return tcpStream(c, job)
}

// closeWhenDone closes nc when ctx ends, so that no Read or Write outlasts it;
// the function it returns closes nc in any case.
func closeWhenDone(ctx context.Context, nc io.Closer) func() {
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	return func() {
		stop()
		nc.Close()
	}
}

// tcpStream writes messages until the time is up and then waits for the
// peer's octet, which says that everything has been read.
func tcpStream(nc halfCloser, job Job) (Sample, error) {
	w := job.Workload
	window := make([]byte, w.window())
	fillPattern(window, job.Seed)
	chunk := w.Size
	if w.Batch && w.Size < gatherSize {
		chunk = gatherSize / w.Size * w.Size
	}
	perChunk := uint64(chunk / w.Size)
	gathered := make([]byte, 0, chunk)

	run := newStopwatch(job)
	var at int
	for {
		for range run.stride(perChunk) {
			var err error
			if w.Batch {
				gathered = gather(gathered[:0], window[at:at+chunk], w.Size)
				_, err = nc.Write(gathered)
			} else {
				_, err = nc.Write(window[at : at+chunk])
			}
			if err != nil {
				return Sample{}, fmt.Errorf("write of %d octets: %w", chunk, err)
			}
			run.add(perChunk)
			if at += chunk; at+chunk > len(window) {
				at = 0
			}
		}
		if run.over() {
			break
		}
	}
	if err := nc.CloseWrite(); err != nil {
		return Sample{}, err
	}
	var ack [1]byte
	if _, err := io.ReadFull(nc, ack[:]); err != nil {
		return Sample{}, fmt.Errorf("waiting for the peer's word that all was read: %w", err)
	}
	return run.stop(), nil
}

// gather appends messages of size octets to buf one by one, as a program with
// many small messages in different places must before it can write them at once.
func gather(buf, messages []byte, size int) []byte {
	for ; len(messages) > 0; messages = messages[size:] {
		buf = append(buf, messages[:size]...)
	}
	return buf
}

// tcpSink reads until the peer's end, in large reads, and answers with one
// octet.
func tcpSink(nc net.Conn, job Job) error {
	buf := make([]byte, max(windowSize, job.Workload.Size))
	var total uint64
	for {
		n, err := nc.Read(buf)
		total += uint64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if total%uint64(job.Workload.Size) != 0 {
		return fmt.Errorf("%d octets arrived, which is no whole number of %d", total, job.Workload.Size)
	}
	_, err := nc.Write([]byte{1})
	return err
}

// messageReader returns what a ping-pong reads with.
func messageReader(nc *net.TCPConn, w Workload) (io.Reader, error) {
	if w.Polling {
		return newSpinReader(nc)
	}
	return nc, nil
}

// tcpPing sends a message, waits for the answer, and so on until the time is up.
func tcpPing(nc *net.TCPConn, job Job) (Sample, error) {
	r, err := messageReader(nc, job.Workload)
	if err != nil {
		return Sample{}, err
	}
	out := make([]byte, job.Workload.Size)
	in := make([]byte, job.Workload.Size)
	fillPattern(out, job.Seed)

	run := newStopwatch(job)
	trips := newTrips()
	for t0 := time.Now(); !run.overAt(t0); {
		if _, err := nc.Write(out); err != nil {
			return Sample{}, err
		}
		if _, err := io.ReadFull(r, in); err != nil {
			return Sample{}, err
		}
		run.add(1)
		t1 := time.Now()
		trips.add(run, t1.Sub(t0))
		t0 = t1
	}
	s := run.stop()
	s.Trips = trips.percentiles()
	return s, checkPattern(in, job.Seed)
}

// tcpPong returns each message to the sender.
func tcpPong(nc *net.TCPConn, job Job) error {
	r, err := messageReader(nc, job.Workload)
	if err != nil {
		return err
	}
	buf := make([]byte, job.Workload.Size)
	for {
		if _, err := io.ReadFull(r, buf); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if _, err := nc.Write(buf); err != nil {
			return err
		}
	}
}
