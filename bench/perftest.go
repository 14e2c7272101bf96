// Programs that nobody here wrote, under `weft run`: those of perftest, one process an
// end and sample. They count messages, not time, and print a table of figures.

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// A perftest does samples by running its programs with Job.Program, which is weft, on
// Job.Library. They inherit the processors of the process that starts them.
type perftest struct{ unverified }

// perftestName is the program that does a workload.
func perftestName(w Workload) string {
	what := "bw"
	if w.Shape == PingPong {
		what = "lat"
	}
	return fmt.Sprintf("ib_%s_%s", w.Op, what)
}

// iterations is how many messages a sample has: a plain TCP in C would take about as
// long as the sample is meant to.
func iterations(job Job) int {
	perSecond := 5e9 / float64(job.Workload.Size)
	if job.Workload.Shape == PingPong {
		perSecond = 80_000 // round trips
	}
	// A program keeps 128 messages under way, and refuses to have fewer in all.
	return max(200, int(perSecond*job.Sample.Seconds()))
}

// A tested is one end's process in one sample.
type tested struct {
	cmd  *exec.Cmd
	said bytes.Buffer
}

// start starts an end of job's program; host is empty for the target.
func (perftest) start(ctx context.Context, job Job, port, host string) (*tested, error) {
	w := job.Workload
	crc := "off"
	if w.CRC {
		crc = "on"
	}
	args := []string{"run", "--library", job.Library, "--crc", crc}
	if job.Congestion != "" {
		args = append(args, "--congestion", job.Congestion)
	}
	args = append(args, perftestName(w), "-R", "-F", "-p", port, "-s", strconv.Itoa(w.Size), "-n", strconv.Itoa(iterations(job)))
	if w.Shape == PingPong && !w.Polling {
		args = append(args, "-e")
	}
	if host != "" {
		args = append(args, host)
	}
	t := &tested{cmd: exec.CommandContext(ctx, job.Program, args...)}
	t.cmd.Stdout, t.cmd.Stderr = &t.said, &t.said
	t.cmd.WaitDelay = time.Second
	return t, t.cmd.Start()
}

// end waits for the process. The error has what it said last.
func (t *tested) end(ctx context.Context) error {
	err := t.cmd.Wait()
	if err == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(t.said.String()), "\n")
	return fmt.Errorf("%s: %w: %s", t.cmd.Args[0], errors.Join(context.Cause(ctx), err), lines[len(lines)-1])
}

// cpu is the time that the process has used.
func (t *tested) cpu() time.Duration {
	s := t.cmd.ProcessState
	return s.UserTime() + s.SystemTime()
}

func (p perftest) prepare(ctx context.Context, job Job) (ready Ready, do serve, err error) {
	// Ports below those that the system gives out: nobody gets it in between.
	port, err := freePort()
	if err != nil {
		return ready, nil, err
	}
	t, err := p.start(ctx, job, strconv.Itoa(port), "")
	if err != nil {
		return ready, nil, err
	}
	do = func(<-chan struct{}) (s Served, err error) {
		err = t.end(ctx)
		s.CPU = t.cpu()
		return s, err
	}
	if err := awaitListener(ctx, port); err != nil {
		_ = t.cmd.Process.Kill()
		return ready, nil, errors.Join(err, t.end(ctx))
	}
	return Ready{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, do, nil
}

func (p perftest) initiate(ctx context.Context, job Job, ready Ready) (s Sample, err error) {
	host, port, err := net.SplitHostPort(ready.Addr)
	if err != nil {
		return s, err
	}
	t, err := p.start(ctx, job, port, host)
	if err != nil {
		return s, err
	}
	if err := t.end(ctx); err != nil {
		return s, err
	}
	s, err = perftestSample(job, t.said.String())
	s.CPU = t.cpu()
	return s, err
}

// perftestSample reads the table that a program has printed: a line of headings, which
// begins with #bytes, and one of figures.
func perftestSample(job Job, said string) (s Sample, err error) {
	var figures []string
	for lines := strings.Split(said, "\n"); len(lines) > 1; lines = lines[1:] {
		if strings.HasPrefix(strings.TrimSpace(lines[0]), "#bytes") {
			figures = strings.Fields(lines[1])
		}
	}
	if job.Workload.Shape == PingPong {
		return perftestTrips(figures)
	}
	return perftestStream(job.Workload, figures)
}

// perftestStream reads bytes, iterations, peak and average in MiB a second.
func perftestStream(w Workload, figures []string) (s Sample, err error) {
	if len(figures) < 4 {
		return s, errNoFigures
	}
	n, nerr := strconv.ParseUint(figures[1], 10, 64)
	rate, rerr := strconv.ParseFloat(figures[3], 64)
	if nerr != nil || rerr != nil {
		return s, errors.Join(errNoFigures, nerr, rerr)
	}
	if !plausible(rate) {
		return s, errNoClock
	}
	s.Messages, s.Total = n, n
	s.Elapsed = time.Duration(float64(n) * float64(w.Size) / (rate * (1 << 20)) * float64(time.Second))
	return s, nil
}

// perftestTrips reads bytes, iterations, then the least, most, median and mean time, the
// standard deviation, and two percentiles: halves of round trips, in microseconds. What
// is not printed, the percentile of 90, stays 0.
func perftestTrips(figures []string) (s Sample, err error) {
	if len(figures) < 9 {
		return s, errNoFigures
	}
	n, err := strconv.ParseUint(figures[1], 10, 64)
	if err != nil {
		return s, errors.Join(errNoFigures, err)
	}
	var us [7]float64
	for i := range us {
		if us[i], err = strconv.ParseFloat(figures[i+2], 64); err != nil {
			return s, errors.Join(errNoFigures, err)
		}
	}
	if !plausible(us[2]) || !plausible(us[3]) {
		return s, errNoClock
	}
	trip := func(half float64) time.Duration { return time.Duration(2 * half * float64(time.Microsecond)) }
	s.Messages, s.Total, s.Elapsed = n, n, time.Duration(n)*trip(us[3])
	s.Trips = [4]time.Duration{trip(us[2]), 0, trip(us[5]), trip(us[6])}
	return s, nil
}

// plausible reports whether a figure can be one. A program of perftest compares the rate of
// the processor's time stamps with what the system says it is. Where they disagree, as they
// may on a busy machine, it goes on and prints 0.00 or inf.
func plausible(figure float64) bool { return figure > 0 && !math.IsInf(figure, 0) }

var errNoFigures = errors.New("the program printed no figures")

// freePort is a port that nobody has, below those that the system gives out by itself.
func freePort() (int, error) {
	for port := 18500; port < 28500; port += 1 + os.Getpid()%97 {
		if ln, err := net.Listen("tcp", fmt.Sprintf(":%d", port)); err == nil {
			return port, ln.Close()
		}
	}
	return 0, errors.New("there is no free port")
}

// awaitListener waits until a program listens at a port. It does not connect: the program
// serves only the first connection.
func awaitListener(ctx context.Context, port int) error {
	for !listens(port) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the program does not listen: %w", context.Cause(ctx))
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// listens looks for a socket in state LISTEN (0A) in the system's tables.
func listens(port int) bool {
	suffix := fmt.Sprintf(":%04X", port)
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			if len(f) > 3 && strings.HasSuffix(f[1], suffix) && f[3] == "0A" {
				return true
			}
		}
	}
	return false
}
