// Command interop runs Weft against independent implementations: Linux's
// soft-iWARP driver with rdma-core's programs, in a disposable guest, and
// Wireshark's dissectors. README.md says what it needs and how to read it.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weft-rdma/weft/interop/internal/guest"
	"github.com/weft-rdma/weft/interop/internal/suite"
)

// Exit statuses.
const (
	exitFailed  = 1 // at least one case failed
	exitUsage   = 2
	exitMissing = 3 // something that the run needs is not there; nothing was claimed
)

const usage = `interop runs Weft against Linux's soft-iWARP driver and Wireshark's dissectors.

	go run . [flags]             run everything
	go run . check FILE...       judge captures: by tshark and by a reading of our own
	go run . speed [flags]       perftest inside the guest, over siw and under weft run, beside plain TCP
	go run . metadata [flags]    files made, looked at and removed in the guest, on knfsd and on Weft
	go run . ucmatose [flags]    a peer for rdma-core's ucmatose, on Weft
	go run . wrongkey [flags]    a peer for rping that uses a wrong STag on purpose

Flags:
`

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) > 0 {
		if command, ok := commands[args[0]]; ok {
			return command(ctx, args[1:])
		}
	}
	return runSuite(ctx, args)
}

// commands are what the first argument can name.
var commands = map[string]func(ctx context.Context, args []string) int{
	"check":    check,
	"metadata": metadataCommand,
	"speed":    speedCommand,
	"ucmatose": ucmatoseCommand,
	"wrongkey": wrongKeyCommand,
}

// parts of the run, in order. The last one needs a guest of its own, and so is run only
// when it is named.
var parts = []string{"captures", "openssl", "guest", "files", "run", "tls"}

// A harness is one run.
type harness struct {
	suite    *suite.Suite
	guest    *guest.Guest
	tlsGuest *guest.Guest // of the part tls
	weft     string       // the command under test
	self     string       // this program, which holds peers of our own
	port     int          // of the last session

	libibverbs string // of weft run: its directory
}

// firstPort and those above it are free in the guest and on the host: they are above the
// ports of NFS (the guest's mountd has 20048, its NFS server 20049), and a run has too few
// sessions to reach 32768, from where Linux assigns ports to clients.
const firstPort = 24000

// nextPort gives every session a port of its own, so that none meets what
// another left behind.
func (h *harness) nextPort() int {
	h.port = max(h.port+1, firstPort)
	return h.port
}

type options struct {
	guest, logs, only, parts, mtus string
	tlsGuest                       string
	limit                          time.Duration
}

func runSuite(ctx context.Context, args []string) int {
	var o options
	flags := flag.NewFlagSet("interop", flag.ContinueOnError)
	flags.StringVar(&o.guest, "guest", os.Getenv("WEFT_GUEST"), "the `command` that drives the guest (default: $WEFT_GUEST, else guest/siwguest)")
	flags.StringVar(&o.tlsGuest, "tls-guest", cmp.Or(os.Getenv("WEFT_TLS_GUEST"), "guest/tlsguest"), "the `command` that drives the guest of the part tls")
	flags.StringVar(&o.logs, "logs", "logs", "`DIR` for captures and output of every case")
	flags.StringVar(&o.only, "only", "", "run only the cases whose name matches this regular `expression`")
	flags.StringVar(&o.parts, "parts", strings.Join(parts[:len(parts)-1], ","), "which `parts` to run")
	flags.StringVar(&o.mtus, "mtu", "1500,9000", "MTUs to boot the guest with, in `octets`")
	flags.DurationVar(&o.limit, "limit", 2*time.Minute, "`time` limit of one case")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	if status, ok := parse(flags, args); !ok {
		return status
	}
	h, plan, err := o.prepare(flags.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		return exitUsage
	}
	if missing := o.missing(plan.parts); len(missing) > 0 {
		fmt.Fprintln(os.Stderr, "interop: nothing was run, because this is missing:")
		for _, what := range missing {
			fmt.Fprintln(os.Stderr, "  -", what)
		}
		return exitMissing
	}
	build, err := h.build(ctx)
	defer os.RemoveAll(build)
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		return exitFailed
	}
	if slices.Contains(plan.parts, "run") {
		if err := h.buildLibrary(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "interop: nothing was run:", err)
			return exitMissing
		}
	}
	if err := h.run(ctx, plan); err != nil {
		fmt.Fprintln(os.Stderr, "interop: nothing was run:", err)
		return exitMissing
	}
	ok := h.suite.Summary()
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "interop: interrupted")
		return exitFailed
	}
	if !ok {
		return exitFailed
	}
	return 0
}

// parse reads flags. Where ok is false it has said what there is to say, and
// the program is to end with status.
func parse(flags *flag.FlagSet, args []string) (status int, ok bool) {
	switch err := flags.Parse(args); {
	case err == nil:
		return 0, true
	case errors.Is(err, flag.ErrHelp):
		return 0, false
	}
	return exitUsage, false
}

// A plan is what a run was asked to do.
type plan struct {
	parts []string
	mtus  []int
}

// prepare turns the options into a harness and a plan.
func (o *options) prepare(rest []string) (*harness, plan, error) {
	if len(rest) > 0 {
		return nil, plan{}, fmt.Errorf("unknown command %q; -h lists them", rest[0])
	}
	var p plan
	for part := range strings.SplitSeq(o.parts, ",") {
		if !slices.Contains(parts, part) {
			return nil, plan{}, fmt.Errorf("unknown part %q, there are %s", part, strings.Join(parts, ", "))
		}
		p.parts = append(p.parts, part)
	}
	for text := range strings.SplitSeq(o.mtus, ",") {
		mtu, err := strconv.Atoi(text)
		if err != nil || mtu < 576 || mtu > 65535 {
			return nil, plan{}, fmt.Errorf("--mtu %s: expected octets, 576 to 65535", text)
		}
		p.mtus = append(p.mtus, mtu)
	}
	s := &suite.Suite{Out: os.Stdout, Limit: o.limit}
	var err error
	if s.Logs, err = filepath.Abs(o.logs); err != nil {
		return nil, plan{}, err
	}
	if o.only != "" {
		if s.Only, err = regexp.Compile(o.only); err != nil {
			return nil, plan{}, fmt.Errorf("--only: %w", err)
		}
	}
	if o.guest == "" {
		o.guest = "guest/siwguest"
	}
	if strings.Contains(o.guest, "/") { // a path, not a name to look up
		if o.guest, err = filepath.Abs(o.guest); err != nil {
			return nil, plan{}, err
		}
	}
	if strings.Contains(o.tlsGuest, "/") {
		if o.tlsGuest, err = filepath.Abs(o.tlsGuest); err != nil {
			return nil, plan{}, err
		}
	}
	h := &harness{suite: s, guest: &guest.Guest{Script: o.guest}, tlsGuest: &guest.Guest{Script: o.tlsGuest}}
	h.self, err = os.Executable()
	return h, p, err
}

// run runs the parts of the plan. The error says that the guest cannot be had:
// it is booted before anything is claimed.
func (h *harness) run(ctx context.Context, p plan) error {
	siw, files, run := slices.Contains(p.parts, "guest"), slices.Contains(p.parts, "files"), slices.Contains(p.parts, "run")
	if siw || files || run {
		defer h.guest.Down(context.WithoutCancel(ctx))
		if err := h.guest.Up(ctx, p.mtus[0]); err != nil {
			return err
		}
	}
	if slices.Contains(p.parts, "captures") {
		h.captures(ctx)
	}
	if slices.Contains(p.parts, "openssl") {
		h.stacks(ctx)
	}
	if files {
		h.files(ctx)
	}
	if run {
		h.weftRun(ctx)
	}
	if siw {
		h.siw(ctx, p.mtus)
	}
	if slices.Contains(p.parts, "tls") {
		return h.linuxTLS(ctx)
	}
	return nil
}

// linuxTLS runs the part of that name in a guest of its own.
func (h *harness) linuxTLS(ctx context.Context) error {
	h.guest.Down(context.WithoutCancel(ctx))
	h.guest = h.tlsGuest
	defer h.guest.Down(context.WithoutCancel(ctx))
	if err := h.guest.Up(ctx, 1500); err != nil {
		return err
	}
	h.xprtsec(ctx)
	return nil
}

// siw runs the cases of the part guest, at each MTU.
func (h *harness) siw(ctx context.Context, mtus []int) {
	for i, mtu := range mtus {
		if ctx.Err() != nil {
			return
		}
		if i == 0 {
			h.pingVariants(ctx)
			h.keyProbes(ctx)
			h.wrongSTags(ctx)
		} else if err := h.guest.Up(ctx, mtu); err != nil {
			h.suite.Fail(fmt.Sprintf("guest/mtu-%d", mtu), err)
			continue
		}
		h.pingMatrix(ctx, mtu)
		h.ucmatoses(ctx, mtu)
	}
}
