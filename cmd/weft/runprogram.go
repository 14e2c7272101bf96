package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/cmd/weft/internal/dropin"
)

// runOptions are the flags of `weft run`.
type runOptions struct {
	dropin.Options
	build, view    bool
	alsoHost       bool
	source, libDir string
	crc            string
	tls            encryption
}

func newRun() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run [flags] PROGRAM [ARGS...]",
		Short: "Run an RDMA program without RDMA hardware",
		Long: `Run starts a program that uses libibverbs, and librdmacm if it does, with
Weft as the RDMA device: unchanged, without hardware, kernel modules or root. Its peer
may be another such program, a Go program on Weft, Linux's siw or a hardware RNIC.

The program replaces weft: signals, exit status, terminal and standard streams are its
own. It has to be linked dynamically; its children get the device, too.

Personas: to an rnic, the default, programs connect by rdma_cm; it speaks plain iWARP. An
rc device is what programs expect that exchange queue pair numbers by themselves; its
peers are other programs under weft run --persona rc. See docs/programs.md.

Programs ask the library for devices. Those that look below /sys/class/infiniband or into
/dev/infiniband themselves find weft0 there with --view.

Devices of the machine itself are hidden. With --also-host they are listed behind weft0;
rdma_cm stays with weft0.

The library is built on first use into the user's cache: from the checkout that this
command is run in or that --source names, or else from the sources of its own version,
which the go command fetches. A package of a distribution brings it built.`,
		Example: `  weft run rping -s -a 127.0.0.1
  weft run --verbose rping -c -a 127.0.0.1 -C 3 -v
  weft run --persona rc ib_write_bw
  weft run --tls rping -s -a 127.0.0.1
  weft run --build`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case o.build && len(args) > 0:
				return usagef("--build runs no program: leave %q out", args[0])
			case !o.build && len(args) == 0:
				return usagef("say which program to run")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	fl := cmd.Flags()
	fl.SetInterspersed(false) // what follows PROGRAM is the program's
	fl.BoolVar(&o.build, "build", false, "build the library and print its directory")
	fl.StringVar(&o.source, "source", "", "build from the checkout of Weft in `DIR`")
	fl.StringVar(&o.libDir, "library", "", "use the library in `DIR`")
	fl.StringVar(&o.Device, "device", "weft0", "call the device `NAME`")
	fl.StringVar(&o.Persona, "persona", "rnic", "look like an rnic, or like an rc device (`PERSONA`)")
	fl.StringVar(&o.PCAP, "pcap", "", "record all connections in `FILE` (pcapng, for Wireshark)")
	fl.StringVar(&o.ListenRange, "listen-range", "", "give out ports `A-B` only")
	fl.BoolVar(&o.Verbose, "verbose", false, "tell at exit what passed")
	fl.BoolVar(&o.Debug, "debug", false, "say why something is refused (WEFT_DEBUG=1)")
	fl.BoolVar(&o.Patient, "patient", false, "have a message wait for a receive, in place of ending the stream")
	fl.BoolVar(&o.Plain, "plain", false, "do not tell a peer of an rnic that this is Weft: no immediate data and no atomics")
	fl.StringVar(&o.crc, "crc", "on", "ask for CRCs: on or off (`MODE`)")
	fl.BoolVar(&o.view, "view", false, "show the device below /sys/class/infiniband and /dev/infiniband, too")
	fl.StringVar(&o.Congestion, "congestion", "", "congestion control of all connections, by `NAME`, such as reno (default: the system's)")
	fl.BoolVar(&o.alsoHost, "also-host", false, "list the machine's own devices, too, behind Weft's")
	fl.BoolVar(&o.Preload, "preload", false, "use LD_PRELOAD in place of LD_LIBRARY_PATH")
	o.tls.register(cmd)
	return cmd
}

func (o *runOptions) check() error {
	switch {
	case runtime.GOOS != "linux":
		return fmt.Errorf("programs that use libibverbs run on Linux, this is %s", runtime.GOOS)
	case o.Persona != "rnic" && o.Persona != "rc":
		return usagef("--persona %q: it is rnic or rc", o.Persona)
	case o.crc != "on" && o.crc != "off":
		return usagef("--crc %q: it is on or off", o.crc)
	case !deviceName.MatchString(o.Device):
		return usagef("--device %q: a name of 1 to 63 letters, digits, - and _ is expected", o.Device)
	case o.ListenRange != "" && !isPortRange(o.ListenRange):
		return usagef("--listen-range %q: two ports from 1 to 65535 are expected, as 7000-7099", o.ListenRange)
	}
	o.NoCRC = o.crc == "off"
	if o.Congestion != "" {
		return checkCongestion(o.Congestion)
	}
	return nil
}

// checkCongestion finds out whether connections may have a congestion control.
func checkCongestion(name string) error {
	lc := net.ListenConfig{Control: cm.Socket{Congestion: name}.Control}
	ln, err := lc.Listen(context.Background(), "tcp", "localhost:0")
	if err != nil {
		return fmt.Errorf("--congestion: %w", err)
	}
	return ln.Close()
}

var deviceName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,63}$`)

func isPortRange(s string) bool {
	first, last, ok := strings.Cut(s, "-")
	from, err1 := strconv.ParseUint(first, 10, 16)
	to, err2 := strconv.ParseUint(last, 10, 16)
	return ok && err1 == nil && err2 == nil && from > 0 && from <= to
}

// startRecording empties the file, in which the program's process will write, and gives it
// a name that holds wherever that goes.
func (o *runOptions) startRecording() (err error) {
	if o.PCAP == "" {
		return nil
	}
	if o.PCAP, err = filepath.Abs(o.PCAP); err != nil {
		return err
	}
	if info, err := os.Stat(o.PCAP); err == nil && !info.Mode().IsRegular() {
		return nil // a pipe, whose reader is the program's
	}
	file, err := os.OpenFile(o.PCAP, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("--pcap: %w", err)
	}
	return file.Close()
}

func (o *runOptions) run(cmd *cobra.Command, args []string) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.build {
		dir, err := o.compiled(cmd)
		if err == nil {
			fmt.Fprintln(cmd.OutOrStdout(), dir)
		}
		return err
	}
	program, err := dropin.FindProgram(args[0])
	if err != nil {
		return err
	}
	dir, err := o.find(cmd)
	if err != nil {
		return err
	}
	if err := o.startRecording(); err != nil {
		return err
	}
	if o.TLS, err = o.tls.ofProgram(); err != nil {
		return err
	}
	if o.alsoHost {
		if o.AlsoHost, err = dropin.HostLibrary(dir); err != nil {
			return fmt.Errorf("--also-host: %w", err)
		}
	}
	if o.view {
		cache, err := cacheFolder()
		if err != nil {
			return err
		}
		if o.View, err = dropin.ViewFolder(cache); err != nil {
			return err
		}
	}
	if err := o.Check(dir); err != nil {
		return err
	}
	return syscall.Exec(program, args, o.Environment(os.Environ(), dir))
}

// cacheFolder is where the user's library and view are kept.
func cacheFolder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w: set XDG_CACHE_HOME to a folder that can be written to", err)
	}
	return filepath.Join(cache, "weft"), nil
}

// find returns the folder of the library: the one that was named, the one that is
// installed beside this command, or the one that is built.
func (o *runOptions) find(cmd *cobra.Command) (string, error) {
	if o.libDir != "" {
		return dropin.Installed(o.libDir)
	}
	if o.source == "" {
		if exe, err := os.Executable(); err == nil {
			if dir, err := dropin.Installed(filepath.Join(filepath.Dir(exe), "..", "lib", "weft")); err == nil {
				return dir, nil
			}
		}
	}
	return o.compiled(cmd)
}

// compiled returns the folder of the library, built from the sources if need be.
func (o *runOptions) compiled(cmd *cobra.Command) (string, error) {
	var places []string
	if wd, err := os.Getwd(); err == nil {
		places = append(places, wd)
	}
	if exe, err := os.Executable(); err == nil {
		places = append(places, filepath.Dir(exe))
	}
	cache, err := cacheFolder()
	if err != nil {
		return "", err
	}
	b := dropin.Builder{
		Cache: filepath.Join(cache, "dropin"),
		Say:   func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), "weft: "+format+"\n", args...) },
	}
	b.Source, err = dropin.FindSource(o.source, places...)
	if version := dropin.Version(); errors.Is(err, dropin.ErrNoSource) && version != "" {
		b.Source, err = b.Fetch(cmd.Context(), version)
	}
	if err != nil {
		return "", err
	}
	return b.Build(cmd.Context())
}
