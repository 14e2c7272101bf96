// This file is the end that measures.

package perf

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// A Config says what to measure.
type Config struct {
	Address string // of the peer, host:port
	// Connections of each kind, in use at the same time: 0 is 1.
	Connections int
	// Consumers at each end, among which the RDMA connections are divided: each has one
	// completion queue and one goroutine. 0 is one for each connection.
	Consumers int
	Ops       []Op          // operations
	Sizes     []int         // message sizes in bytes, of the operations that have several
	CRC       []bool        // settings of the CRC
	Depth     int           // queue depth: most messages in flight on each connection
	Batch     int           // messages posted at a time; 0 is a quarter of the depth
	Signal    int           // one message in so many is signaled; 0 is a quarter of the depth
	Rounds    int           // most rounds of measurement, as Duration allows
	Duration  time.Duration // about how long it takes in all
	Tuning    Tuning
	Logger    *slog.Logger
	Opened    func(*verbs.RNIC)       // is called with the RNIC that measures; may be nil
	TLS       *tls.Config             // encrypts control and RDMA connections; nil for plain ones
	Wrap      func(net.Conn) net.Conn // around RDMA connections, inside of TLS; nil for nothing

	// Timeout bounds the wait for the peer at each step; 0 is ten seconds while
	// connecting, and two minutes for a run.
	Timeout time.Duration

	// Interval, if above 0, is how long each figure is measured at a time: there are as many
	// rounds as Duration then has room for, and Rounds does not count.
	Interval time.Duration

	// Measured, if not nil, is called with each bandwidth as it is measured, and with what it
	// is of.
	Measured func(what string, m Moment)

	// Progress, if not nil, is called when step of steps has been done.
	Progress func(step, steps int)
}

// verifySlots is the number of messages, each with its own slot, that verify an
// operation on a connection; fewer if they are large.
const verifySlots = 16

// slotsFor returns the number of slots if so many connections share the memory.
func slotsFor(size, connections int) int {
	return min(max(min(inFlight, maxRoom/connections)/size, 1), verifySlots)
}

// A driver holds the connections of a measurement.
type driver struct {
	cfg     *Config
	rnic    *verbs.RNIC
	ctl     *control
	streams []*tcpStream
	rdma    map[bool][]*endpoint // by CRC
	shared  map[bool]consumers   // of rdma
	token   []byte
	room    int // bytes of each connection's memory, each way
	system  System
	seed    uint64
	began   time.Time       // of the measurement
	trips   []time.Duration // of the last latency run, one connection's behind another's
}

// Run measures and returns what it found. It needs a peer at cfg.Address.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	cfg.Connections = max(cfg.Connections, 1)
	d := &driver{
		cfg: &cfg, rdma: make(map[bool][]*endpoint), shared: make(map[bool]consumers), token: make([]byte, tokenLen), system: thisSystem(),
		trips: make([]time.Duration, maxTrips),
	}
	rand.Read(d.token)
	for _, size := range append([]int{wordSize}, cfg.Sizes...) {
		d.room = max(d.room, size*slotsFor(size, cfg.Connections))
	}
	var err error
	if d.rnic, err = verbs.Open(verbs.Config{Logger: cfg.Logger}); err != nil {
		return nil, err
	}
	defer d.rnic.Close()
	if cfg.Opened != nil {
		cfg.Opened(d.rnic)
	}
	defer d.close()
	if err := d.open(ctx); err != nil {
		return nil, because(ctx, err)
	}
	return d.measure(ctx)
}

// dial opens one connection to the peer, which begins with the bytes first.
func (d *driver) dial(ctx context.Context, first ...byte) (*net.TCPConn, error) {
	dialer := net.Dialer{Control: d.cfg.Tuning.socket().Control}
	nc, err := dialer.DialContext(ctx, "tcp", d.cfg.Address)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil, fmt.Errorf("nothing listens on %s: start the other end there with weft perf --listen %s", d.cfg.Address, d.cfg.Address)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w", d.cfg.Address, err)
	}
	if _, err := nc.Write(first); err != nil {
		nc.Close()
		return nil, err
	}
	return nc.(*net.TCPConn), nil
}

// join opens a connection of this session.
func (d *driver) join(ctx context.Context) (*net.TCPConn, error) {
	return d.dial(ctx, append([]byte{joinMark}, d.token...)...)
}

// ask sends a request and receives its reply.
func (d *driver) ask(req request) (reply, error) {
	if err := d.ctl.send(req); err != nil {
		return reply{}, fmt.Errorf("the control connection broke: %w", err)
	}
	return d.ctl.answered()
}

// open makes all connections.
func (d *driver) open(ctx context.Context) error {
	if err := d.greet(ctx); err != nil {
		return err
	}
	// The peer limits the time of each step, and replies with an error; this limit
	// is for peers that do not reply.
	limit := cmp.Or(d.cfg.Timeout, openLimit) * time.Duration(d.cfg.Connections*(len(d.cfg.CRC)+1)+1)
	ctx, cancel := limited(ctx, limit)
	defer cancel()
	defer guard(ctx, d.ctl.nc)()
	for _, crc := range d.cfg.CRC {
		var err error
		if d.shared[crc], err = newConsumers(d.rnic, d.cfg.Consumers, d.cfg.Connections, d.cfg.Depth, d.cfg.Tuning); err != nil {
			return err
		}
	}
	for range d.cfg.Connections {
		if err := d.openStream(ctx); err != nil {
			return fmt.Errorf("plain TCP connection: %w", because(ctx, err))
		}
		for _, crc := range d.cfg.CRC {
			if err := d.connect(ctx, crc); err != nil {
				return fmt.Errorf("RDMA connection with CRC %s: %w", onOff(crc), because(ctx, err))
			}
		}
	}
	return nil
}

// greet opens the control connection. The peer must answer in time, but may queue this
// driver behind others.
func (d *driver) greet(ctx context.Context) error {
	soon, cancel := limited(ctx, cmp.Or(d.cfg.Timeout, openLimit))
	defer cancel()
	nc, err := d.dial(soon, controlMark)
	if err != nil {
		if cause := because(soon, err); soon.Err() != nil && ctx.Err() == nil {
			return fmt.Errorf("%s cannot be reached: is the host up, and does a firewall let the port through? %w", d.cfg.Address, cause)
		}
		return because(soon, err)
	}
	d.ctl = newControl(nc) // to be closed
	if d.cfg.TLS != nil {
		secure, err := secureDriver(soon, nc, d.cfg.TLS)
		if err != nil {
			return d.stranger(because(soon, err))
		}
		d.ctl = newControl(secure)
	}
	release := guard(soon, d.ctl.nc)
	rep, err := d.ask(request{Do: doHello, Hello: &hello{
		Protocol: protocol, Token: d.token, Connections: d.cfg.Connections, Consumers: d.cfg.Consumers, Room: d.room, Depth: d.cfg.Depth, Tuning: d.cfg.Tuning,
	}})
	release()
	if err != nil {
		return d.stranger(because(soon, err))
	}
	if rep.Wait {
		d.cfg.Logger.Warn("the other end is busy with another measurement: waiting", "address", d.cfg.Address)
		defer guard(ctx, d.ctl.nc)()
		_, err = d.ctl.answered()
	}
	return because(ctx, err)
}

// stranger adds to an error before the first reply what was expected of the other end.
// An error that the other end has sent needs no explanation.
func (d *driver) stranger(err error) error {
	var theirs peerError
	var failed *cm.TLSError
	var alert *net.OpError
	switch {
	case err == nil, errors.As(err, &theirs), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &failed):
		return fmt.Errorf("cannot connect to %s: %w", d.cfg.Address, err)
	case errors.As(err, &alert) && alert.Op == "remote error": // mostly since it wants another certificate
		return fmt.Errorf("cannot connect to %s: %w", d.cfg.Address, &cm.TLSError{Err: fmt.Errorf("the other end refuses: %w", alert.Err)})
	}
	return fmt.Errorf("%s accepts connections but does not answer as weft perf --listen does: %w", d.cfg.Address, err)
}

func (d *driver) openStream(ctx context.Context) error {
	if err := d.ctl.send(request{Do: doStream}); err != nil {
		return err
	}
	nc, err := d.join(ctx)
	if err != nil {
		return err
	}
	d.streams = append(d.streams, newTCPStream(nc, d.room))
	options, err := cm.SocketOf(nc)
	if err != nil {
		return err
	}
	d.system.Congestion = options.Congestion
	_, err = d.ctl.answered()
	return err
}

func (d *driver) connect(ctx context.Context, crc bool) error {
	e, err := newEndpoint(d.rnic, d.room, d.cfg.Depth, d.cfg.Tuning, d.shared[crc].next(len(d.rdma[crc])))
	if err != nil {
		return err
	}
	d.rdma[crc] = append(d.rdma[crc], e)
	if err := d.ctl.send(request{Do: doConnect, CRC: crc, Remote: e.remote()}); err != nil {
		return err
	}
	tcp, err := d.join(ctx)
	if err != nil {
		return err
	}
	var nc net.Conn = tcp
	if d.cfg.TLS == nil {
		nc = wrapped(nc, d.cfg.Wrap)
	}
	e.conn, err = cm.Connect(ctx, e.qp, nc, cm.Params{MPA: d.cfg.Tuning.mpa(crc), TLS: d.cfg.TLS, Wrap: d.cfg.Wrap})
	if err != nil {
		nc.Close()
		return err
	}
	rep, err := d.ctl.answered()
	if err != nil {
		return err
	}
	if rep.Remote == nil {
		return errors.New("the other end did not advertise its memory")
	}
	e.peer = verbs.Remote{STag: memory.STag(rep.Remote.STag), TO: rep.Remote.TO}
	return nil
}

func (d *driver) close() {
	for _, endpoints := range d.rdma {
		for _, e := range endpoints {
			e.close()
		}
	}
	for _, cs := range d.shared {
		cs.close()
	}
	for _, s := range d.streams {
		s.nc.Close()
	}
	if d.ctl != nil {
		d.ctl.nc.Close()
	}
}

// do executes a run and returns its duration. Runs that measure latency leave the round
// trips in d.trips.
func (d *driver) do(ctx context.Context, r *run) (time.Duration, error) {
	ctx, cancel := limited(ctx, cmp.Or(d.cfg.Timeout, runLimit))
	defer cancel()
	defer guard(ctx, d.ctl.nc)()
	d.seed++
	r.Seed = d.seed << 32
	r.Depth = depthFor(r.Size, d.cfg.Depth)
	r.Batch, r.Signal = portion(d.cfg.Batch, r.Depth), portion(d.cfg.Signal, r.Depth)
	runs := r.split(d.cfg.Connections)
	var endpoints []*endpoint // none for plain TCP
	var cs consumers
	if r.Kind == bandwidth || r.Kind == latency {
		endpoints, cs = d.rdma[r.CRC], d.shared[r.CRC]
	}
	for i, e := range endpoints {
		e.prepare(&runs[i], runs[i].Seed)
	}
	elapsed, err := d.part(ctx, r, runs, endpoints, cs)
	if err != nil {
		return 0, fmt.Errorf("%s of %s, CRC %s: %w", r.Op, SizeString(r.Size), onOff(r.CRC), because(ctx, err))
	}
	return elapsed, nil
}

// part executes r, split into runs per connection, and times all of them together.
func (d *driver) part(ctx context.Context, r *run, runs []run, endpoints []*endpoint, cs consumers) (time.Duration, error) {
	if _, err := d.ask(request{Do: doRun, Run: r}); err != nil {
		return 0, err
	}
	for i, e := range endpoints {
		if err := e.begin(ctx, &runs[i]); err != nil {
			return 0, err
		}
	}
	elapsed, err := timed(ctx, cs, len(runs), func(ctx context.Context, i int) error {
		run := &runs[i]
		switch r.Kind {
		case bandwidth:
			return endpoints[i].transfer(ctx, run)
		case stream:
			return d.streams[i].transfer(ctx, run)
		case latency:
			return endpoints[i].pingpong(ctx, run, d.trips[i*r.N:][:r.N])
		}
		return d.streams[i].pingpong(ctx, run, d.trips[i*r.N:][:r.N])
	})
	if err != nil {
		return 0, err
	}
	for i, e := range endpoints {
		if err := e.end(ctx, &runs[i]); err != nil {
			return 0, err
		}
	}
	if _, err := d.ask(request{Do: doCheck}); err != nil {
		return 0, err
	}
	for i, e := range endpoints {
		if err := e.checkDriver(&runs[i]); err != nil {
			return 0, err
		}
	}
	return elapsed, nil
}

func wrapped(nc net.Conn, wrap func(net.Conn) net.Conn) net.Conn {
	if wrap == nil {
		return nc
	}
	return wrap(nc)
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// groups are the combinations of operation and size, in the order of Ops.
func (c *Config) groups() []*group {
	var groups []*group
	for _, op := range Ops {
		if !slices.Contains(c.Ops, op) {
			continue
		}
		sizes := c.Sizes
		if op.word() {
			sizes = []int{wordSize}
		}
		for _, size := range sizes {
			groups = append(groups, newGroup(op, size, c.CRC))
		}
	}
	return groups
}
