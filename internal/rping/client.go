// This file is the side that sends pings.

package rping

import (
	"context"
	"fmt"

	"github.com/weft-rdma/weft/verbs"
)

// A Client sends pings. Only one goroutine may use it.
type Client struct {
	endpoint
	source buffer
}

// NewClient returns a client whose pings have size octets, MinSize to MaxSize.
// Connect its queue pair, then Ping.
func NewClient(r *verbs.RNIC, size int) (*Client, error) {
	if size < MinSize || size > MaxSize {
		return nil, fmt.Errorf("rping: ping size %d is outside %d to %d", size, MinSize, MaxSize)
	}
	c := new(Client)
	if err := c.open(r, size); err != nil {
		return nil, fmt.Errorf("rping: %w", err)
	}
	var err error
	if c.source, err = c.register(size, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite); err != nil {
		c.Close()
		return nil, fmt.Errorf("rping: %w", err)
	}
	return c, nil
}

// QP is the queue pair to connect.
func (c *Client) QP() *verbs.QP { return c.qp }

// Close frees all resources. Close the connection first: Close aborts it.
func (c *Client) Close() error { return c.close() }

// Ping makes ping number n, from 0, and returns the data sent and the data that the
// server wrote back. Both are valid until the next call.
func (c *Client) Ping(ctx context.Context, n int) (sent, echo []byte, err error) {
	Fill(c.source.octets, n)
	if err := c.advertise(ctx, c.source, "sending the source's advertisement"); err != nil {
		return nil, nil, err
	}
	if _, err := c.recv(ctx, "the server to read the source"); err != nil {
		return nil, nil, err
	}
	if err := c.advertise(ctx, c.data, "sending the sink's advertisement"); err != nil {
		return nil, nil, err
	}
	if _, err := c.recv(ctx, "the server to write to the sink"); err != nil {
		return nil, nil, err
	}
	return c.source.octets, c.data.octets, nil
}

func (c *Client) advertise(ctx context.Context, b buffer, what string) error {
	r := b.mr.Remote(0)
	AppendInfo(c.out.octets[:0], Info{Buf: r.TO, RKey: uint32(r.STag), Size: uint32(len(b.octets))})
	return c.send(ctx, what)
}

// Compare returns an error that says where echo first differs from sent.
func Compare(sent, echo []byte) error {
	if len(sent) != len(echo) {
		return fmt.Errorf("rping: data mismatch: %d octets sent, %d came back", len(sent), len(echo))
	}
	for i := range sent {
		if sent[i] != echo[i] {
			return fmt.Errorf("rping: data mismatch: octet %d of %d was sent as %#02x and came back as %#02x", i, len(sent), sent[i], echo[i])
		}
	}
	return nil
}
