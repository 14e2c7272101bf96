// This file measures files made, looked at and removed by the guest's NFS client over RDMA,
// on Linux's own server and on Weft's in turns: `go run . metadata`.

package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

//go:embed scripts/exported.sh
var exportDisk string

// What the servers serve: directories of the guest's own disk. guestDisk has one for each.
const (
	guestDisk  = "/srv/weft-metadata"
	guestTools = "/tmp/weft-metadata" // the command under test, and this one
)

// A server is one that the guest's client mounts.
type server struct {
	name    string
	options string // of mount
	path    string // what is mounted
}

// works are what is done with each file, and what the client has to ask for.
var works = []string{"create", "stat", "remove"}

// Goals of the rate against Linux's server.
const (
	metadataGoal = 0.8
	metadataAim  = 1.2
)

// metadataCommand measures, and prints a table in Markdown.
func metadataCommand(ctx context.Context, args []string) int {
	var o options
	rounds, files := 5, 300
	work := ""
	flags := flag.NewFlagSet("interop metadata", flag.ContinueOnError)
	flags.StringVar(&o.guest, "guest", os.Getenv("WEFT_GUEST"), "the `command` that drives the guest (default: $WEFT_GUEST, else guest/siwguest)")
	flags.IntVar(&rounds, "rounds", rounds, "how `many` times each server is measured")
	flags.IntVar(&files, "files", files, "how `many` files are made, looked at and removed each time")
	flags.StringVar(&work, "work", "", "do this `WORK` here, in the directory that is the argument, and print the seconds that it took: create, stat or remove")
	if status, ok := parse(flags, args); !ok {
		return status
	}
	if work != "" {
		return report("interop metadata", workOnFiles(work, flags.Arg(0), files))
	}
	o.parts, o.mtus, o.logs = "files", "1500", "logs"
	h, plan, err := o.prepare(flags.Args())
	if err == nil && (rounds < 1 || files < 1) {
		err = fmt.Errorf("--rounds %d --files %d: expected 1 or more", rounds, files)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop metadata:", err)
		return exitUsage
	}
	if missing := o.missing(plan.parts); len(missing) > 0 {
		fmt.Fprintln(os.Stderr, "interop metadata: this is missing:\n  - "+strings.Join(missing, "\n  - "))
		return exitMissing
	}
	build, err := h.build(ctx)
	defer os.RemoveAll(build)
	if err == nil {
		err = h.measureFiles(ctx, rounds, files)
	}
	return report("interop metadata", err)
}

// report prints an error, and returns the exit status.
func report(who string, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", who, err)
	return exitFailed
}

// workOnFiles does the work of one measurement, and prints the seconds that it took.
func workOnFiles(work, dir string, files int) error {
	do := map[string]func(string) error{
		"create": func(name string) error {
			f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
			if err != nil {
				return err
			}
			return f.Close()
		},
		"stat": func(name string) error {
			_, err := os.Stat(name)
			return err
		},
		"remove": os.Remove,
	}[work]
	if do == nil {
		return fmt.Errorf("--work %s: expected one of %s", work, strings.Join(works, ", "))
	}
	begin := time.Now()
	for i := range files {
		if err := do(filepath.Join(dir, fmt.Sprintf("file%05d", i))); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(time.Since(begin).Seconds())
}

// measureFiles boots the guest, and has its client work on both servers in turns.
func (h *harness) measureFiles(ctx context.Context, rounds, files int) error {
	defer h.guest.Down(context.WithoutCancel(ctx))
	if err := h.guest.Up(ctx, 1500); err != nil {
		return err
	}
	if err := h.installAt(ctx, guestTools, h.weft, h.self); err != nil {
		return err
	}
	servers, stop, err := h.startServers(ctx)
	if err != nil {
		return err
	}
	defer stop()
	rates := make([][][]float64, len(servers)) // of each server and work, files a second
	for round := range rounds {
		for i := range servers {
			fmt.Fprintf(os.Stderr, "%s, round %d of %d\n", servers[i].name, round+1, rounds)
			took, err := h.workOn(ctx, &servers[i], files)
			if err != nil {
				return fmt.Errorf("%s: %w", servers[i].name, err)
			}
			for w, seconds := range took {
				if round == 0 {
					rates[i] = append(rates[i], nil)
				}
				rates[i][w] = append(rates[i][w], float64(files)/seconds)
			}
		}
	}
	fmt.Println("| work | files a second, " + servers[0].name + " | " + servers[1].name + " | ratio (min..max) | goal | aim | |\n|---|---|---|---|---|---|---|")
	for w, work := range works {
		fmt.Println(metadataRow(work, rates[0][w], rates[1][w]))
	}
	return nil
}

// metadataRow is a line of the table: medians, and the ratios of the rounds.
func metadataRow(work string, theirs, own []float64) string {
	var ratios []float64
	low, high := own[0]/theirs[0], 0.0
	for i := range own {
		r := own[i] / theirs[i]
		ratios, low, high = append(ratios, r), min(low, r), max(high, r)
	}
	verdict := "missed"
	switch m := middle(ratios); {
	case m >= metadataAim:
		verdict = "aim met"
	case m >= metadataGoal:
		verdict = "met"
	}
	return fmt.Sprintf("| %s | %.0f | %.0f | %.2f (%.2f..%.2f) | >= %.1f | >= %.1f | %s |",
		work, middle(theirs), middle(own), middle(ratios), low, high, metadataGoal, metadataAim, verdict)
}

// startServers starts both servers in the guest. Each has a directory on the guest's disk,
// and answers when what was asked for is there.
func (h *harness) startServers(ctx context.Context) (servers []server, stop func(), err error) {
	knfsd, weft := guestDisk+"/knfsd", guestDisk+"/weft"
	for _, s := range []string{startKnfsd, exportDisk} {
		if _, err := h.guest.Run(ctx, "set -- "+guestShare+" "+knfsd+" "+weft+"\n"+s); err != nil {
			return nil, nil, fmt.Errorf("starting the guest's server: %w", err)
		}
	}
	rdma, tcp := h.nextPort(), h.nextPort()
	p, err := h.guest.Start(ctx, "weft-serve", time.Hour, fmt.Sprintf("%s/%s serve %s --listen %[4]s:%[5]d --tcp %[4]s:%[6]d --portmap off --squash none",
		guestTools, filepath.Base(h.weft), weft, h.guest.Addr, rdma, tcp))
	if err != nil {
		return nil, nil, err
	}
	stop = func() { p.Stop(context.WithoutCancel(ctx)) }
	for _, port := range []int{rdma, tcp} {
		if err := h.guest.AwaitListener(ctx, port); err != nil {
			stop()
			return nil, nil, errors.Join(err, complaint(ctx, p))
		}
	}
	return []server{
		{"knfsd", "vers=3,proto=rdma,port=20049,nolock", knfsd},
		{"Weft", fmt.Sprintf("vers=3,proto=rdma,port=%d,mountproto=tcp,mountport=%d,nolock", rdma, tcp), "/"},
	}, stop, nil
}

// workOn has the client make files on a server, look at them after another mount, so that it
// has to ask, and remove them. It returns the seconds that each work took.
func (h *harness) workOn(ctx context.Context, s *server, files int) ([]float64, error) {
	mount := fmt.Sprintf("mkdir -p %[4]s && mount -t nfs -o %[1]s %[2]s:%[3]s %[4]s", s.options, h.guest.Addr, s.path, guestMount)
	defer h.guest.Run(context.WithoutCancel(ctx), "grep -q ' "+guestMount+" ' /proc/mounts && umount -f -l "+guestMount+"; true")
	var took []float64
	for _, work := range works {
		command := fmt.Sprintf("timeout 120 %s/%s metadata --work %s --files %d %s", guestTools, filepath.Base(h.self), work, files, guestMount)
		if work != "remove" { // which finds the names known
			command = "umount " + guestMount + " 2>/dev/null; " + mount + " && " + command
		}
		out, err := h.guest.Run(ctx, command)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", work, err)
		}
		var seconds float64
		if err := json.Unmarshal([]byte(out), &seconds); err != nil {
			return nil, fmt.Errorf("%s printed %q: %w", work, out, err)
		}
		took = append(took, seconds)
	}
	_, err := h.guest.Run(ctx, "umount "+guestMount)
	return took, err
}

// installAt copies files of this machine into the guest's own memory.
func (h *harness) installAt(ctx context.Context, dir string, files ...string) error {
	for _, file := range files {
		if err := h.guest.Put(ctx, file); err != nil {
			return err
		}
		name := filepath.Base(file)
		if _, err := h.guest.Run(ctx, fmt.Sprintf("mkdir -p %[1]s && cp /host/%[2]s %[1]s/%[2]s", dir, name)); err != nil {
			return err
		}
	}
	return nil
}
