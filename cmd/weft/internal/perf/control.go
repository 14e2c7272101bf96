// This file is the control connection: its messages and limits.

package perf

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// protocol names the protocol of the control connection, and its version.
const protocol = "weft-perf 3"

// Every connection begins with a byte that says what it is. The token of the session
// follows joinMark; from then on the connection carries plain TCP or MPA.
const (
	controlMark = 'C'
	joinMark    = 'J'
)

// tokenLen is the length of a token in bytes.
const tokenLen = 16

// maxLine bounds a line of the control connection, in bytes.
const maxLine = 64 << 10

// Requests of the driver.
const (
	doHello   = "hello"
	doStream  = "stream"  // the next connection is one for plain TCP
	doConnect = "connect" // the next one is an RDMA connection
	doRun     = "run"     // answered when the peer is ready
	doCheck   = "check"   // the driver's part of the run is done; answered when the peer has compared
)

// A request is a line from the driver.
type request struct {
	Do     string  `json:"do"`
	Hello  *hello  `json:"hello,omitempty"`
	CRC    bool    `json:"crc,omitempty"`    // of doConnect
	Remote *remote `json:"remote,omitempty"` // of doConnect: the driver's memory
	Run    *run    `json:"run,omitempty"`
}

// A hello is the parameters that both ends agree on.
type hello struct {
	Protocol    string `json:"protocol"`
	Token       []byte `json:"token"`       // the session's other connections begin with it
	Connections int    `json:"connections"` // of plain TCP, and RDMA connections with each setting of the CRC
	Consumers   int    `json:"consumers"`   // at each end, see Config
	Room        int    `json:"room"`        // bytes of memory of each connection, each way
	Depth       int    `json:"depth"`       // of each connection
	Tuning      Tuning `json:"tuning"`
}

// remote is memory of one end that the other end may access.
type remote struct {
	STag uint32 `json:"stag"`
	TO   uint64 `json:"to"`
}

// A reply is a line from the peer.
type reply struct {
	Error  string  `json:"error,omitempty"`
	Wait   bool    `json:"wait,omitempty"`   // of doHello: another driver measures; a second reply follows
	Remote *remote `json:"remote,omitempty"` // of doConnect: the peer's memory
}

// A control is one end of a control connection.
type control struct {
	nc net.Conn
	r  *bufio.Reader
}

func newControl(nc net.Conn) *control {
	return &control{nc, bufio.NewReaderSize(nc, maxLine)}
}

// interrupt closes the connection, without the words of parting that may block.
func (c *control) interrupt() {
	if secure, ok := c.nc.(*tls.Conn); ok {
		secure.NetConn().Close()
	} else {
		c.nc.Close()
	}
}

func (c *control) send(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = c.nc.Write(append(line, '\n'))
	return err
}

func (c *control) receive(v any) error {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		if err == io.EOF && len(line) > 0 {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("the other end does not speak %q: %w", protocol, err)
	}
	return nil
}

// answered receives a reply; a failure at the other end is an error.
func (c *control) answered() (reply, error) {
	var r reply
	if err := c.receive(&r); err != nil {
		return r, fmt.Errorf("the control connection broke: %w", err)
	}
	if r.Error != "" {
		return r, peerError(r.Error)
	}
	return r, nil
}

// A peerError is an error of the other end.
type peerError string

func (e peerError) Error() string { return "at the other end: " + string(e) }

// guard aborts calls on nc when ctx ends, until the returned function is called, also
// repeatedly. From then on the caller sets the deadlines.
func guard(ctx context.Context, nc net.Conn) (release func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		nc.SetDeadline(past)
	})
	return sync.OnceFunc(func() {
		if stop() {
			nc.SetDeadline(time.Time{})
		} else {
			<-done // lest it undo a deadline that the caller sets next
		}
	})
}

// allow limits calls on nc, which ctx guards, to d.
func allow(ctx context.Context, nc net.Conn, d time.Duration) {
	nc.SetDeadline(time.Now().Add(d))
	if ctx.Err() != nil {
		nc.SetDeadline(past) // what the guard has set may just have been undone
	}
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// limited returns a context that also ends after d, with a limitError as its cause.
func limited(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, limitError(d))
}

// A limitError says that something took too long.
type limitError time.Duration

func (e limitError) Error() string { return fmt.Sprintf("not finished within %v", time.Duration(e)) }

// Timeout reports true.
func (e limitError) Timeout() bool { return true }

// because returns the cause of the end of ctx in place of an error that followed from
// it.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return cause
	}
	return err
}
