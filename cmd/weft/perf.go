// This file is weft perf.

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cmd/weft/internal/perf"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/verbs"
)

// perfFlags are the flags of `weft perf`.
type perfFlags struct {
	options
	observed        observation
	listen, connect string
	child           bool
	allow           allowed
	tls             encryption
	admit           origin.Admit // of --allow
	ops, sizes, crc string
	rounds          int
	connections     int
	consumers       int
	depth           int
	batch, signal   int
	duration        time.Duration
	interval        time.Duration
	timeout         timeout
	tuning          perf.Tuning
	json, histogram bool
	plot            string
	cmd             *cobra.Command
}

func newPerf() *cobra.Command {
	f := new(perfFlags)
	cmd := &cobra.Command{
		Use:   "perf [flags]",
		Short: "Measure RDMA and plain TCP side by side",
		Long: `Perf moves data between two RNICs with every operation. It prints bandwidth, message
rate and latency percentiles beside those of plain TCP between the same two processes
in the same run, and their ratio. The receiving end verifies all data.

Without --listen and --connect it starts the other end by itself, as a second process
on this machine, and takes somewhat less than a minute. To measure between two
machines, run it with --listen on one and with --connect on the other.

The status is 1 if something failed, 3 if the other end did not answer in time, and
130 after an interrupt.`,
		Example: `  weft perf
  weft perf --ops write,read --sizes 4K,1M --crc on --duration 5s
  weft perf --ops send --sizes 64 --batch 1         post messages one by one
  weft perf --ops write --sizes 1M --connections 4
  weft perf --ops send --sizes 64 --connections 16 --consumers 1
  weft perf --json >result.json
  weft perf diff before.json after.json             what has changed beyond noise
  weft perf --duration 10m --interval 1s --ops write --sizes 1M --plot perf.svg
  weft perf --listen 192.0.2.7:7471                 on one machine, and on another
  weft perf --connect 192.0.2.7:7471 --plot perf.svg`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.cmd = cmd
			return f.run(cmd.Context())
		},
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.listen, "listen", "", "be the other end: serve measurements at `ADDR` (host:port) until interrupted")
	fl.StringVar(&f.connect, "connect", "", "measure against the other end at `ADDR` (host:port)")
	f.allow.register(fl, "all")
	f.timeout.register(fl, "10s for each step of connecting, 2m for a run")
	fl.StringVar(&f.ops, "ops", "all", "comma-separated `LIST` of operations: write, read, send, immediate, fetchadd, cmpswap")
	fl.StringVar(&f.sizes, "sizes", "64,4K,64K,1M", "comma-separated `LIST` of message sizes for write, read and send, in bytes or with K or M")
	fl.StringVar(&f.crc, "crc", "both", "`MODE` of CRC32C: on, off or both")
	fl.DurationVar(&f.duration, "duration", 30*time.Second, "approximate `DURATION` of all measurements together")
	fl.IntVar(&f.rounds, "rounds", 5, "measure everything up to `N` times and report medians")
	fl.DurationVar(&f.interval, "interval", 0, "print each bandwidth as it is measured, for about this `DURATION` at a time; --rounds does not count then")
	fl.IntVar(&f.connections, "connections", 1, "use `N` RDMA connections at a time, and as many of plain TCP")
	fl.IntVar(&f.consumers, "consumers", 0, "divide the RDMA connections among `N` completion queues at each end, with one goroutine each (default: each connection has its own)")
	fl.IntVar(&f.depth, "depth", 256, "queue depth: up to `N` messages in flight on a connection; fewer large ones, for 4 MiB in all")
	fl.IntVar(&f.batch, "batch", 0, "post `N` messages at a time, at most half of the depth (default: a quarter)")
	fl.IntVar(&f.signal, "signal", 0, "signal one message in `N`, at most half of the depth (default: a quarter)")
	fl.StringVar(&f.tuning.Congestion, "congestion", "", "congestion control of all connections, by `NAME`, such as reno (default: the system's)")
	fl.Var((*byteSize)(&f.tuning.SendBuffer), "send-buffer", "send buffer of all sockets, in `BYTES` or with K or M (default: tuned by the system)")
	fl.Var((*byteSize)(&f.tuning.ReceiveBuffer), "receive-buffer", "receive buffer of all sockets, in `BYTES` or with K or M (default: tuned by the system)")
	fl.BoolVar(&f.tuning.Markers, "markers", false, "use MPA markers in both directions")
	fl.IntVar(&f.tuning.MaxULPDU, "fpdu", 0, "largest ULPDU in `BYTES` (default: what a segment of the path holds)")
	fl.DurationVar(&f.tuning.Spin, "spin", 0, "poll connections and completion queues for this `DURATION` before sleeping: lower latency for CPU time")
	fl.BoolVar(&f.histogram, "histogram", false, "also print histograms of latency, beside those of plain TCP")
	fl.BoolVar(&f.json, "json", false, "print one JSON document, histograms included, instead of the tables")
	fl.StringVar(&f.plot, "plot", "", "also plot bandwidth, its ratio to plain TCP and message rate by size, latency by percentile, and a long run over time, to `FILE.svg`")
	f.register(cmd)
	f.observed.register(cmd)
	f.tls.register(cmd)
	fl.BoolVar(&f.child, "child", false, "serve one measurement, and exit at the end of standard input")
	fl.MarkHidden("child")
	cmd.AddCommand(newPerfDiff())
	return cmd
}

// patience limits the wait for the peer at each step; 0 stands for the default limits.
func (f *perfFlags) patience() time.Duration {
	if f.timeout.given {
		return f.timeout.contact()
	}
	return 0
}

// config makes the configuration from the flags.
func (f *perfFlags) config() (cfg perf.Config, err error) {
	cfg = perf.Config{
		Connections: f.connections, Consumers: f.consumers, Depth: f.depth, Batch: f.batch, Signal: f.signal,
		Rounds: f.rounds, Duration: f.duration, Interval: f.interval, Timeout: f.patience(), Tuning: f.tuning, Ops: perf.Ops,
	}
	if f.ops != "all" {
		if cfg.Ops, err = perf.ParseOps(f.ops); err != nil {
			return cfg, usagef("--ops: %v", err)
		}
	}
	if cfg.Sizes, err = perf.ParseSizes(f.sizes); err != nil {
		return cfg, usagef("--sizes: %v", err)
	}
	switch f.crc {
	case "on":
		cfg.CRC = []bool{true}
	case "off":
		cfg.CRC = []bool{false}
	case "both":
		cfg.CRC = []bool{true, false}
	default:
		return cfg, usagef("--crc %q: expected on, off or both", f.crc)
	}
	if err := f.check(&cfg); err != nil {
		return cfg, err
	}
	if f.admit, err = f.allow.admit(); err != nil {
		return cfg, err
	}
	return cfg, checkPerfAddress(cmp.Or(f.listen, f.connect)) // at most one is set
}

// check refuses numbers that are out of range, and flags that exclude each other.
func (f *perfFlags) check(cfg *perf.Config) error {
	switch {
	case f.listen != "" && f.connect != "":
		return usagef("--listen and --connect exclude each other: one is for each end")
	case f.listen != "" && (f.json || f.histogram || f.plot != "" || f.interval != 0):
		return usagef("--json, --histogram, --interval and --plot are for the end that measures; --listen is the other end")
	case f.listen == "" && f.connect == "" && f.tls.wanted():
		return usagef("--tls is for two ends: --listen and --connect")
	case f.listen == "" && len(f.allow) > 0:
		return usagef("--allow is for --listen: it restricts who may measure")
	case f.json && f.histogram:
		return usagef("--json includes the histograms: leave out --histogram")
	case f.connections < 1 || f.connections > perf.MaxConnections:
		return usagef("--connections %d: expected 1 to %d", f.connections, perf.MaxConnections)
	case f.consumers < 0 || f.consumers > f.connections:
		return usagef("--consumers %d: expected up to %d, as there are --connections", f.consumers, f.connections)
	case f.depth < 1 || f.depth > perf.DepthLimit(f.connections):
		return usagef("--depth %d: expected 1 to %[3]d with --connections %[2]d", f.depth, f.connections, perf.DepthLimit(f.connections))
	case slices.Max(cfg.Sizes) > perf.SizeLimit(f.connections):
		return usagef("--sizes: expected up to %[2]s with --connections %[1]d", f.connections, perf.SizeString(perf.SizeLimit(f.connections)))
	case f.batch != 0 && (f.batch < 1 || f.batch > max(f.depth/2, 1)):
		return usagef("--batch %d: expected 1 to %[3]d with a depth of %[2]d", f.batch, f.depth, max(f.depth/2, 1))
	case f.signal != 0 && (f.signal < 1 || f.signal > max(f.depth/2, 1)):
		return usagef("--signal %d: expected 1 to %[3]d with a depth of %[2]d", f.signal, f.depth, max(f.depth/2, 1))
	case f.plot != "" && !strings.HasSuffix(f.plot, ".svg"):
		return usagef("--plot %s: expected a name that ends in .svg", f.plot)
	case f.rounds < 1 || f.rounds > 1000:
		return usagef("--rounds %d: expected 1 to 1000", f.rounds)
	case f.duration <= 0:
		return usagef("--duration %v: expected more than 0, such as 10s", f.duration)
	case f.interval < 0 || f.interval > 0 && f.interval < 10*time.Millisecond:
		return usagef("--interval %v: expected 10ms or more", f.interval)
	case f.tuning.Spin < 0:
		return usagef("--spin %v: expected 0 or more", f.tuning.Spin)
	case f.tuning.MaxULPDU != 0 && (f.tuning.MaxULPDU < mpa.MinMULPDU || f.tuning.MaxULPDU > mpa.MaxMULPDU):
		return usagef("--fpdu %d: expected %d to %d", f.tuning.MaxULPDU, mpa.MinMULPDU, mpa.MaxMULPDU)
	}
	return nil
}

// checkPerfAddress refuses what is neither an address nor empty.
func checkPerfAddress(addr string) error {
	if addr == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(addr)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return usagef("%q is not an address: expected host:port, such as 192.0.2.7:7471", addr)
	}
	return nil
}

func (f *perfFlags) run(ctx context.Context) (err error) {
	cfg, err := f.config()
	if err != nil {
		return err
	}
	if cfg.Logger, err = f.logger(f.cmd.ErrOrStderr()); err != nil {
		return err
	}
	cfg.Logger = f.notices(f.cmd, cfg.Logger, slog.LevelWarn)
	wrap, stop, err := f.wrap()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	cfg.Wrap = wrap
	if err := f.tls.open(cfg.Logger); err != nil {
		return err
	}
	if err := f.observed.open(ctx, f.cmd, &f.options); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.observed.close()) }()
	cfg.Opened = func(r *verbs.RNIC) {
		f.observed.rnic(r)
		f.observed.running()
	}
	if f.listen != "" {
		return f.serve(ctx, cfg)
	}
	cfg.Address = f.connect
	if host, _, err := net.SplitHostPort(f.connect); err == nil {
		cfg.TLS = f.tls.client(host)
	}
	if f.connect == "" {
		exe, err := os.Executable()
		if err != nil {
			return fmt.Errorf("cannot find this program, to start the other end: %w", err)
		}
		child, err := perf.StartChild(ctx, exe, "perf", "--listen", "127.0.0.1:0", "--child", "--log-level", f.logLevel)
		if err != nil {
			return err
		}
		cfg.Address = child.Address
		defer func() {
			if stopErr := child.Stop(); err != nil {
				err = errors.Join(err, stopErr)
			}
		}()
	}
	return f.measure(ctx, cfg)
}

// measure measures against the peer at cfg.Address and prints the report.
func (f *perfFlags) measure(ctx context.Context, cfg perf.Config) (err error) {
	var plot *os.File
	if f.plot != "" {
		if plot, err = os.Create(f.plot); err != nil { // before the work, as it may fail
			return fmt.Errorf("cannot plot: %w", err)
		}
		defer plot.Close()
	}
	done := func() {}
	if f.interval > 0 {
		cfg.Measured = f.printMoment
	} else {
		done = f.progress(&cfg)
	}
	report, err := perf.Run(ctx, cfg)
	done()
	if err != nil {
		return err
	}
	if plot != nil {
		if err := errors.Join(report.WritePlot(plot), plot.Close()); err != nil {
			return fmt.Errorf("cannot plot to %s: %w", f.plot, err)
		}
	}
	if f.json {
		enc := json.NewEncoder(f.cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		return enc.Encode(report)
	}
	err = report.WriteTable(f.cmd.OutOrStdout())
	if f.histogram && err == nil {
		err = report.WriteHistograms(f.cmd.OutOrStdout())
	}
	return err
}

// printMoment prints a bandwidth as it was measured.
func (f *perfFlags) printMoment(what string, m perf.Moment) {
	fmt.Fprintf(f.cmd.ErrOrStderr(), "%8.1f s  %-26s %8.3f GB/s\n", m.Seconds, what, m.BytesPerSecond/1e9)
}

// serve runs the other end.
func (f *perfFlags) serve(ctx context.Context, cfg perf.Config) error {
	var lc net.ListenConfig
	lc.SetMultipathTCP(false) // plain TCP is what is compared
	ln, err := lc.Listen(ctx, "tcp", f.listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", f.listen, err)
	}
	peer := perf.PeerConfig{Listener: ln.(*net.TCPListener), Opened: cfg.Opened, Logger: cfg.Logger, Wrap: cfg.Wrap, Admit: f.admit, Once: f.child}
	if peer.TLS, err = f.tls.server(); err != nil {
		return err
	}
	if !f.child {
		perf.Announce(f.cmd.ErrOrStderr(), ln.Addr())
		if err := perf.Serve(ctx, peer); ctx.Err() == nil {
			return err
		}
		return nil // interrupted, as it was meant to be
	}
	// The parent handles interrupts, and ends this process by closing its standard
	// input.
	signal.Ignore(os.Interrupt)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	go func() {
		io.Copy(io.Discard, f.cmd.InOrStdin())
		cancel()
	}()
	if err := perf.Announce(f.cmd.OutOrStdout(), ln.Addr()); err != nil {
		return err
	}
	if err := perf.Serve(ctx, peer); ctx.Err() == nil {
		return err
	}
	return nil
}
