// This file holds the flags and the frame of the subcommands that are peers.

package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/weft-rdma/weft/capture"
	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// peerFlags are those that the peers of our own share.
type peerFlags struct {
	flags      *flag.FlagSet
	port       int
	listen     string
	noCRC      bool
	peerToPeer bool
	revision   int
	pcap       string
	limit      time.Duration
}

func newPeerFlags(name string, port int) *peerFlags {
	p := &peerFlags{flags: flag.NewFlagSet(name, flag.ContinueOnError)}
	p.flags.IntVar(&p.port, "p", port, "TCP `port`")
	p.flags.StringVar(&p.listen, "b", "", "as the server, the `address` to listen on")
	p.flags.BoolVar(&p.noCRC, "no-crc", false, "do not ask for CRC")
	p.flags.BoolVar(&p.peerToPeer, "peer-to-peer", false, "as the client, ask for the peer-to-peer set-up of RFC 6581")
	p.flags.IntVar(&p.revision, "mpa-rev", 2, "as the client, the MPA `revision`, 1 or 2")
	p.flags.StringVar(&p.pcap, "pcap", "", "record the connections in `FILE`")
	p.flags.DurationVar(&p.limit, "limit", 30*time.Second, "`time` limit")
	return p
}

// params turns the flags into the terms of a connection.
func (p *peerFlags) params(wrap func(net.Conn) net.Conn) cm.Params {
	cfg := mpa.Config{NoCRC: p.noCRC, PeerToPeer: p.peerToPeer}
	if p.revision == 1 {
		cfg.Profile = mpa.ProfileRFC5044
	}
	return cm.Params{MPA: cfg, Wrap: wrap}
}

// record opens the capture file; wrap is nil when none was asked for.
func (p *peerFlags) record() (wrap func(net.Conn) net.Conn, done func() error, err error) {
	if p.pcap == "" {
		return nil, func() error { return nil }, nil
	}
	w, err := capture.Create(p.pcap)
	if err != nil {
		return nil, nil, err
	}
	return func(nc net.Conn) net.Conn { return capture.Conn(nc, w) }, w.Close, nil
}

// main runs a peer with an RNIC and a capture and turns its error into an exit
// status.
func (p *peerFlags) main(ctx context.Context, body func(context.Context, *verbs.RNIC, cm.Params) error) int {
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	wrap, done, err := p.record()
	if err == nil {
		var rnic *verbs.RNIC
		if rnic, err = verbs.Open(verbs.Config{Name: p.flags.Name()}); err == nil {
			err = body(ctx, rnic, p.params(wrap))
			rnic.Close()
		}
		if closeErr := done(); err == nil {
			err = closeErr
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.flags.Name(), err)
		return exitFailed
	}
	return 0
}

func (p *peerFlags) listener(ctx context.Context, rnic *verbs.RNIC, params cm.Params) (*cm.Listener, error) {
	return cm.Listen(ctx, rnic, "tcp", net.JoinHostPort(p.listen, fmt.Sprint(p.port)), cm.ListenConfig{MPA: params.MPA, Wrap: params.Wrap})
}
