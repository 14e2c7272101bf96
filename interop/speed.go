// This file measures programs of perftest inside the guest, over siw and under `weft run`
// in turns, beside plain TCP: `go run . speed`.

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-rdma/weft/interop/internal/guest"
)

// A track is what a program runs over in the guest.
type track struct {
	name   string
	prefix string // of the command
	device string
}

// tracks are compared with the first.
var tracks = []track{
	{name: "siw", device: "siw0"},
	{name: "weft run, no CRC", prefix: guestWeft + " run --library " + guestLibrary + " --crc off ", device: "weft0"},
	{name: "weft run, CRC", prefix: guestWeft + " run --library " + guestLibrary + " ", device: "weft0"},
}

// Where the guest has the command under test and the library of weft run.
const (
	guestWeft    = "/tmp/weft-speed/weft"
	guestLibrary = "/tmp/weft-speed"
)

// A load is a program of perftest with messages of so many octets.
type load struct {
	program    string
	size       int
	iterations int
}

var loads = []load{
	{"ib_write_bw", 64 << 10, 5000}, {"ib_read_bw", 64 << 10, 5000}, {"ib_send_bw", 64 << 10, 5000},
	{"ib_write_bw", 1 << 20, 1000}, {"ib_read_bw", 1 << 20, 1000}, {"ib_send_bw", 1 << 20, 1000},
}

// speedCommand measures, and prints a table in Markdown.
func speedCommand(ctx context.Context, args []string) int {
	var o options
	rounds := 5
	flags := flag.NewFlagSet("interop speed", flag.ContinueOnError)
	flags.StringVar(&o.guest, "guest", os.Getenv("WEFT_GUEST"), "the `command` that drives the guest (default: $WEFT_GUEST, else guest/siwguest)")
	flags.IntVar(&rounds, "rounds", rounds, "how `many` times each program runs")
	if status, ok := parse(flags, args); !ok {
		return status
	}
	o.parts, o.mtus, o.logs = "run", "1500", "logs"
	h, plan, err := o.prepare(flags.Args())
	if err == nil && rounds < 1 {
		err = fmt.Errorf("--rounds %d: expected 1 or more", rounds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop speed:", err)
		return exitUsage
	}
	if missing := o.missing(plan.parts); len(missing) > 0 {
		fmt.Fprintln(os.Stderr, "interop speed: this is missing:\n  - "+strings.Join(missing, "\n  - "))
		return exitMissing
	}
	build, err := h.build(ctx)
	defer os.RemoveAll(build)
	if err == nil {
		err = h.buildLibrary(ctx)
	}
	if err == nil {
		err = h.measure(ctx, rounds)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop speed:", err)
		return exitFailed
	}
	return 0
}

// measure boots the guest and measures everything in it.
func (h *harness) measure(ctx context.Context, rounds int) error {
	defer h.guest.Down(context.WithoutCancel(ctx))
	if err := h.guest.Up(ctx, 1500); err != nil {
		return err
	}
	if err := h.install(ctx); err != nil {
		return err
	}
	fmt.Println("| program | size | " + trackNames() + " | plain TCP | weft run against siw, CRC off, on | against TCP |\n|---|---|" + strings.Repeat("---|", len(tracks)+3))
	for _, l := range loads {
		figures := make([][]float64, len(tracks)+1) // by track, and plain TCP; GB/s
		for round := range rounds {
			fmt.Fprintf(os.Stderr, "%s %d octets, round %d of %d\n", l.program, l.size, round+1, rounds)
			for i, t := range tracks {
				figure, err := h.perftest(ctx, l, t)
				if err != nil {
					return fmt.Errorf("%s over %s: %w", l.program, t.name, err)
				}
				figures[i] = append(figures[i], figure)
			}
			figure, err := h.iperf(ctx, l.size)
			if err != nil {
				return fmt.Errorf("iperf3: %w", err)
			}
			figures[len(tracks)] = append(figures[len(tracks)], figure)
		}
		fmt.Println(l.row(figures))
	}
	return nil
}

func trackNames() string {
	var names []string
	for _, t := range tracks {
		names = append(names, t.name)
	}
	return strings.Join(names, " | ")
}

// row is a line of the table: medians in GB/s, and medians of the ratios of each round.
func (l load) row(figures [][]float64) string {
	cells := []string{l.program, fmt.Sprintf("%d KiB", l.size>>10)}
	for _, f := range figures {
		cells = append(cells, fmt.Sprintf("%.2f", middle(f)))
	}
	against := func(other []float64) string {
		var both []string
		for _, own := range figures[1:len(tracks)] {
			var ratios []float64
			for i := range own {
				ratios = append(ratios, own[i]/other[i])
			}
			both = append(both, fmt.Sprintf("%.2f", middle(ratios)))
		}
		return strings.Join(both, ", ")
	}
	cells = append(cells, against(figures[0]), against(figures[len(tracks)]))
	return "| " + strings.Join(cells, " | ") + " |"
}

// middle is the median of some figures.
func middle(figures []float64) float64 {
	sorted := slices.Sorted(slices.Values(figures))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// install copies the command under test and its library into the guest's own memory.
func (h *harness) install(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(h.libibverbs, "*"))
	if err != nil {
		return err
	}
	return h.installAt(ctx, guestLibrary, append(files, h.weft)...)
}

// attempts is how often perftest is tried: it gives no figure when its two ways to tell the
// processor's frequency differ, which happens on a busy machine.
const attempts = 8

// perftest runs a program of perftest between two processes in the guest, and returns
// what it says of the bandwidth in GB/s.
func (h *harness) perftest(ctx context.Context, l load, t track) (float64, error) {
	for range attempts {
		port := h.nextPort()
		command := fmt.Sprintf("%s%s -R -F -d %s -s %d -n %d -p %d", t.prefix, l.program, t.device, l.size, l.iterations, port)
		out, err := h.together(ctx, port, command, command+" "+h.guest.Addr)
		if err != nil {
			return 0, err
		}
		if figure := bandwidth(out, l.size); figure > 0 {
			return figure, nil
		}
	}
	return 0, fmt.Errorf("no figure in %d runs: the processor's frequency varies", attempts)
}

// bandwidth is the average in what a program of perftest printed, in GB/s; 0 if there is none.
func bandwidth(out string, size int) float64 {
	for line := range strings.Lines(out) {
		// octets, iterations, peak and average in MiB a second
		if f := strings.Fields(line); len(f) >= 4 && f[0] == strconv.Itoa(size) {
			average, _ := strconv.ParseFloat(f[3], 64)
			return average * (1 << 20) / 1e9
		}
	}
	return 0
}

// iperf sends octets by plain TCP between two processes in the guest, in writes of size.
func (h *harness) iperf(ctx context.Context, size int) (float64, error) {
	port := h.nextPort()
	out, err := h.together(ctx, port, fmt.Sprintf("iperf3 -s -1 -p %d", port),
		fmt.Sprintf("iperf3 -c %s -p %d -t 1 -l %d -f k", h.guest.Addr, port, size))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if at := slices.Index(f, "Kbits/sec"); at > 0 && slices.Contains(f, "receiver") {
			figure, err := strconv.ParseFloat(f[at-1], 64)
			return figure * 1000 / 8 / 1e9, err
		}
	}
	return 0, fmt.Errorf("it printed no figure, its last line is %.80q", lastLine(out))
}

// together runs a server and a client in the guest, and returns what the client printed.
func (h *harness) together(ctx context.Context, port int, server, client string) (string, error) {
	s, err := h.guest.Start(ctx, "server", time.Minute, server)
	if err != nil {
		return "", err
	}
	defer s.Stop(context.WithoutCancel(ctx))
	if err := h.guest.AwaitListener(ctx, port); err != nil {
		return "", errors.Join(err, complaint(ctx, s))
	}
	out, err := h.guest.Run(ctx, "timeout 60 "+client+" 2>&1")
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, lastLine(out))
	}
	_, err = s.Wait(ctx, time.Minute)
	return out, err
}

// complaint is what a program in the guest wrote to its standard error.
func complaint(ctx context.Context, p *guest.Program) error {
	_, stderr, err := p.Output(ctx)
	if err != nil || stderr == "" {
		return err
	}
	return errors.New(lastLine(stderr))
}
