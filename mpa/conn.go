// Package mpa is Marker PDU Aligned framing for TCP (RFC 5044, and RFC 6581 for
// its enhanced start-up): it carries ULPDUs, DDP's segments, over an ordered
// byte stream and keeps their boundaries.
//
// A stream begins with start-up, one side as Initiator and one as Responder,
// which determines its [Params]. Then it is in Full Operation, as a [Conn]: each
// ULPDU travels in one FPDU, with its length, a CRC32c unless both sides declined it,
// and markers where the receiver asked for them.
//
// # The flow
//
//  1. Out: [Conn.Append] frames ULPDUs into a batch (internal/fpdu). Long payload is
//     referred to, not copied.
//  2. [Conn.Flush] writes the batch: over TCP on Linux by sendmsg (internal/socket), under
//     the [Guard] and without waiting; over any other net.Conn by writes that wait.
//  3. In: the reader, in [Conn.Receive], reads as much as there is into the read-ahead
//     buffer, checks each FPDU where it lies, and hands its ULPDU to the [Sink].
//  4. A consumer may receive in the reader's place, with [Conn.Poll] and [Conn.Wait]. Who
//     waits and who receives is at the head of visit.go.
//
// # Locking
//
// A Conn has no lock. Its sending half belongs to one goroutine at a time, by the rules of
// its user; its receiving half to the holder of the token of internal/turns.
package mpa

// A stream in Full Operation: FPDUs over a connection, in both directions.

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weft-rdma/weft/mpa/internal/fpdu"
	"github.com/weft-rdma/weft/mpa/internal/socket"
	"github.com/weft-rdma/weft/mpa/internal/turns"
)

// A Conn carries ULPDUs over an ordered byte stream (RFC 5044 §4-6). It is
// what DDP asks of the protocol below it.
//
// The sending half (MULPDU, Fenced, Room, Append, AppendVolatile, Appended,
// Written, Flush, Truncate, Guard) belongs to one goroutine at a time, the
// receiving half (Receive, Drain) to one goroutine, which shares it with callers of Poll
// and Wait. The two, and all other methods, may be used at the same time. Close and
// Reset end Flush, Receive and Wait.
//
// Over TCP on Linux long payload is not copied on its way out, if no
// markers are sent; and on its way in it is read straight to its place, if
// neither CRC nor markers are received.
type Conn struct {
	nc     net.Conn
	tcp    tcpConn // nc or what it wraps; nil if that is not TCP
	params Params

	transport transport
	direct    direct       // transport, if it is one
	turns     *turns.Turns // of direct
	polled    polledConn   // nc, if it is one
	fenced    atomic.Bool  // nothing may be sent yet
	whole     atomic.Bool  // CloseWrite had to close both halves
	stats     counters

	// The sending half.
	batch   fpdu.Batch
	guard   Guard
	sendErr error // what ended the sending half
	emss    socket.EMSS
	mulpdu  int // of the batch being gathered

	// The receiving half.
	reader  reader
	recvErr error // what ended the receiving half
}

// NewConn starts Full Operation over nc with the parameters p, the result of start-up.
// It owns nc from now on, and p.Early.
func NewConn(nc net.Conn, p Params) *Conn {
	c := &Conn{nc: nc, tcp: unwrapTCP(nc), params: p}
	c.params.Early = nil
	if c.tcp != nil {
		// RFC 5044 §5.1: segments begin with FPDUs if writes leave at once. An
		// error costs time only, and one that matters comes back on writing.
		_ = c.tcp.SetNoDelay(true)
	}
	c.emss, c.mulpdu = emssOf(nc, c.tcp), clampMULPDU(p.MaxULPDU)
	c.connect(newDirect(nc, &c.stats))
	c.fenced.Store(!p.Initiator)
	c.batch = fpdu.Batch{Markers: p.SendMarkers, CRC: p.CRC}
	if c.direct != nil && !p.SendMarkers {
		c.batch.Refer = fpdu.CopyLimit
	}
	c.reader = newReader(c.transport, c.direct, p, &c.fenced, &c.stats)
	c.reader.leaves = c.polled != nil
	return c
}

// connect makes c use d, or if there is none reads and writes that wait.
func (c *Conn) connect(d direct) {
	if d == nil {
		c.transport = &stream{nc: c.nc, stats: &c.stats, writing: make(chan struct{}, 1)}
		return
	}
	c.transport, c.direct, c.turns = d, d, d.share()
	if p, ok := c.nc.(polledConn); ok {
		c.polled = p
		p.ReceiveWith(c.receivePolled)
		c.turns.Stay()
	}
}

// A tcpConn is a TCP connection: a *net.TCPConn, or one that Go's network poller does not
// know (internal/polled).
type tcpConn interface {
	net.Conn
	syscall.Conn
	SetNoDelay(on bool) error
	SetLinger(sec int) error
}

// unwrapTCP is the TCP connection in nc, or nil.
func unwrapTCP(nc net.Conn) tcpConn {
	for {
		if t := asTCP(nc); t != nil {
			return t
		}
		switch t := nc.(type) {
		case interface{ NetConn() net.Conn }:
			nc = t.NetConn()
		default:
			return nil
		}
	}
}

// Params returns the terms of the stream, without Early.
func (c *Conn) Params() Params { return c.params }

// NetConn returns the connection below. Reading from it or writing to it
// breaks the stream.
func (c *Conn) NetConn() net.Conn { return c.nc }

// LocalAddr and RemoteAddr are those of the connection below.
func (c *Conn) LocalAddr() net.Addr  { return c.nc.LocalAddr() }
func (c *Conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// Peer is RemoteAddr for a log: empty if the connection has none.
func (c *Conn) Peer() string {
	if a := c.nc.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}

// Version is the DDP version that goes with the MPA revision: 0 with the RDMA
// Consortium's, else 1 (RFC 5044 appendix C).
func (c *Conn) Version() uint8 {
	if c.params.Revision == RevisionRDMAC {
		return 0
	}
	return 1
}

// MULPDU is the largest ULPDU, in octets, to be appended now: from 128 to
// 64768. It follows Params.MaxULPDU or else the connection's EMSS, which is looked
// up again from time to time (RFC 5044 §4.5). Over a connection of records, of TLS say, whose
// RecordSize method returns their size in octets, an FPDU fills a record.
func (c *Conn) MULPDU() int {
	if c.params.MaxULPDU <= 0 && c.batch.Empty() {
		c.mulpdu = mulpduFor(c.emss.At(c.batch.Sent()), c.params.SendMarkers)
	}
	return c.mulpdu
}

// Fenced reports that nothing is sent yet, because a Responder has to wait for
// the Initiator's first FPDU (RFC 5044 §7.1.2 rule 4).
func (c *Conn) Fenced() bool { return c.fenced.Load() }

// Room reports whether the batch takes another ULPDU before it is flushed.
func (c *Conn) Room() bool { return c.batch.Room() }

// Append puts one ULPDU, of header followed by payload, 1 to 64768 octets,
// into the batch. Header is copied; payload may be referred to until it is
// written. A ULPDU of another length ends the sending half: Flush returns the error.
//
// Reading payload may fault, as its pages are not mapped, lack the right, or lie behind
// the end of their file. A caller that wants to survive that calls Append under
// [runtime/debug.SetPanicOnFault], once for many ULPDUs as it costs more than a short one;
// after the panic Truncate(Appended()) removes the part of a frame, and the stream goes on.
func (c *Conn) Append(header []byte, payload [][]byte) {
	if n, ok := c.admit(header, payload); ok {
		c.batch.Add(n, header, payload, c.batch.Refers(n))
	}
}

// AppendVolatile is Append for payload that others may change at any time. With
// CRC, where a change before the write would spoil the frame and so the stream,
// payload is digested while it is copied: copied reports that nothing refers to
// it any more.
func (c *Conn) AppendVolatile(header []byte, payload [][]byte) (copied bool) {
	if n, ok := c.admit(header, payload); ok {
		c.batch.Add(n, header, payload, !c.batch.CRC && c.batch.Refers(n))
	}
	return c.batch.CRC
}

// AppendRun is Append for several short ULPDUs: each of the next size octets of headers and of
// the next payload, which is copied. After a fault in payload Truncate(Appended()) may leave some
// of them, and Truncate to what was appended before leaves none.
func (c *Conn) AppendRun(headers []byte, size int, payloads [][]byte) {
	for _, p := range payloads {
		if n := size + len(p); n == 0 || n > MaxMULPDU {
			c.refuse(n)
			return
		}
	}
	c.batch.AddRun(headers, size, payloads)
}

// admit returns the length of a ULPDU, if it may be sent.
func (c *Conn) admit(header []byte, payload [][]byte) (n int, ok bool) {
	n = len(header)
	for _, p := range payload {
		n += len(p)
		if n > MaxMULPDU {
			break
		}
	}
	if n == 0 || n > MaxMULPDU {
		c.refuse(n)
		return 0, false
	}
	return n, true
}

// refuse ends the sending half because of a ULPDU of n octets.
func (c *Conn) refuse(n int) {
	c.failSend(fmt.Errorf("mpa: ULPDU refused: its length is %s, expected 1 to %d octets", lengthWord(n), MaxMULPDU))
}

func lengthWord(n int) string {
	if n == 0 {
		return "0"
	}
	return fmt.Sprintf("%d or more", n)
}

// Appended counts the ULPDUs appended since the stream began.
func (c *Conn) Appended() uint64 { return c.batch.Appended() }

// Written counts those of them that the connection below has taken wholly.
func (c *Conn) Written() uint64 { return c.batch.Written() }

// CanTry reports whether Flush without waiting can write at all.
func (c *Conn) CanTry() bool { return c.direct != nil }

// Guard sets what is held around each attempt to write; nil, the default, is
// nothing. Where CanTry is false payload was copied when it was appended, and
// the guard is asked before the write and not held during it.
func (c *Conn) Guard(g Guard) { c.guard = g }

// Flush writes what was appended. With wait false it does not wait for the
// network; with wait true it may return before all is written, but not before a
// whole frame is. drained reports that nothing is left, which a fenced Conn does not
// achieve. The error is [ErrRevoked] when the guard refused, and a [*MemoryError] when
// payload that is referred to cannot be read: the stream goes on, when the frames
// concerned have been dropped by Truncate. Any other ends the sending half.
func (c *Conn) Flush(wait bool) (drained bool, err error) {
	if c.sendErr != nil {
		return false, c.sendErr
	}
	if c.batch.Empty() {
		return true, nil
	}
	if c.fenced.Load() {
		return false, nil
	}
	frames, octets := c.batch.Written(), c.batch.Sent()
	err = c.transport.flush(&c.batch, c.guard, wait)
	c.stats.framesOut.Add(c.batch.Written() - frames)
	c.stats.octetsOut.Add(c.batch.Sent() - octets)
	if err == nil {
		return c.batch.Empty(), nil
	}
	if fault := (*MemoryError)(nil); !errors.Is(err, ErrRevoked) && !errors.As(err, &fault) {
		err = &Error{Code: CodeClosed, Detail: "writing to " + addrWord(c.nc), Err: err}
		c.failSend(err)
	}
	return false, err
}

func (c *Conn) failSend(err error) {
	if c.sendErr == nil {
		c.sendErr = err
	}
}

// Truncate drops the ULPDUs appended, from number n on (from 0, as Appended
// counts), that have not begun to be written, and returns what Appended then
// is. The stream goes on behind the last one kept.
func (c *Conn) Truncate(n uint64) uint64 {
	c.batch.Truncate(n)
	return c.batch.Appended()
}

// Receive hands the peer's ULPDUs to s, in order, until the stream ends. It
// returns io.EOF when the peer closed between FPDUs, the error of s if it
// returned one, or else an *Error. Afterwards nothing more is received, and
// the error is returned again (RFC 5044 §8); the sending half goes on, and so
// does the connection.
func (c *Conn) Receive(s Sink) error {
	if c.recvErr == nil {
		c.recvErr = c.receive(s)
		if c.endedWhole(c.recvErr) {
			c.recvErr = io.EOF
		}
	}
	return c.recvErr
}

func (c *Conn) receive(s Sink) error {
	if c.turns != nil {
		c.turns.Open()
		defer c.turns.End()
	}
	return c.reader.receive(s)
}

// Drain reads and drops what the peer still sends, until its end: then it
// returns nil. It belongs after Receive, and under a read deadline: a peer need
// not stop.
func (c *Conn) Drain() error {
	if c.recvErr == nil {
		c.recvErr = io.EOF
	}
	if c.turns != nil {
		c.turns.Begin()
		defer c.turns.End()
	}
	err := c.reader.drain()
	if c.endedWhole(err) {
		return nil
	}
	return err
}

// endedWhole reports whether err comes of CloseWrite closing both halves.
func (c *Conn) endedWhole(err error) bool {
	return c.whole.Load() && (errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe))
}

// SetReadDeadline limits how long Receive and Drain wait for the peer.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if c.turns != nil {
		return c.turns.SetDeadline(t)
	}
	return c.nc.SetReadDeadline(t)
}

// SetWriteDeadline limits how long Flush waits for the peer.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.nc.SetWriteDeadline(t) }

// CloseWrite ends the sending half (FIN). A connection that cannot end one half
// only is closed: the peer sees the end of the stream as it should, what it
// still sends is lost, and Receive returns io.EOF.
func (c *Conn) CloseWrite() error {
	if h, ok := c.nc.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	c.whole.Store(true)
	return c.Close()
}

// Reset ends both halves at once, by RST if the connection is one of TCP or has
// a SetLinger of its own. Any other is closed within an FPDU, which has begun to
// be sent already or gets one octet for that: so the peer does not take the end
// for a graceful one. If the peer does not read, Reset gives up on that octet after
// 100 ms. It must not be called from within a Guard, or Window or Release
// of a Sink.
func (c *Conn) Reset() error {
	c.transport.close()
	if ok, err := abort(c.nc); ok {
		return err
	}
	if s, ok := c.transport.(*stream); ok {
		s.cut()
	}
	return c.nc.Close()
}

// Close ends both halves; what the connection below has taken is still sent.
// It must not be called from within a Guard, or Window or Release of a Sink.
func (c *Conn) Close() error {
	c.transport.close()
	return c.nc.Close()
}

func addrWord(nc net.Conn) string {
	if a := nc.RemoteAddr(); a != nil {
		return a.String()
	}
	return "the peer"
}
