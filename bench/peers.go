// Which peers there are on this machine. Those in C are compiled when a run
// begins; what that needs and is not installed is named, with the remedy.

package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

//go:embed c
var sources embed.FS

// Peers are the peers of a run.
type Peers struct {
	Missing    []Missing
	programs   map[Peer]string // compiled ones, their files
	dir        string          // of these
	served     string          // for directories that are served
	libibverbs string          // directory of the libibverbs of Perftest
	wire       *wire           // for samples over MTU1500; nil without
}

// inMemory is where the directories are that are served, if the system has such a
// place: disks are not what is measured.
const inMemory = "/dev/shm"

// Missing says why a peer's rows are left out.
type Missing struct {
	Peer   Peer   `json:"peer"`
	Why    string `json:"why"`
	Remedy string `json:"remedy,omitempty"` // a command that mends it
}

// cPeers are the peers in C: their source, what they are linked with, and the
// package of Debian that has that.
var cPeers = []struct {
	peer   Peer
	source string
	flags  []string
	debian string
}{
	{TCPC, "tcp.c", []string{"-pthread"}, "gcc libc6-dev"},
	{Fabric, "fabric.c", []string{"-pthread", "-lfabric"}, "libfabric-dev"},
}

// findPeers looks which peers there are, of those that are wanted. Peers.close
// removes what it leaves. Older is the commit that Before is built from; "" is none.
func findPeers(ctx context.Context, wanted func(Peer) bool, older string) (_ *Peers, err error) {
	p := &Peers{programs: map[Peer]string{}}
	if p.dir, err = os.MkdirTemp("", "weft-bench-"); err != nil {
		return nil, err
	}
	if err = os.CopyFS(p.dir, sources); err == nil {
		err = p.makeServed()
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	for _, c := range cPeers {
		if !wanted(c.peer) {
			continue
		}
		if m := p.compile(ctx, c.peer, c.source, c.flags, c.debian); m != nil {
			p.Missing = append(p.Missing, *m)
		}
	}
	if wanted(Perftest) {
		if m := p.dropIn(ctx); m != nil {
			p.Missing = append(p.Missing, *m)
		}
	}
	if wanted(Before) {
		if m := p.before(ctx, older); m != nil {
			p.Missing = append(p.Missing, *m)
		}
	}
	if wanted(Peer(MTU1500)) {
		if p.wire, err = startWire(ctx); err != nil {
			p.Missing = append(p.Missing, Missing{Peer(MTU1500), err.Error(), namespacesRemedy})
		}
	}
	return p, ctx.Err()
}

// before builds this command as it was at an older commit, or says why it cannot.
func (p *Peers) before(ctx context.Context, commit string) *Missing {
	if commit == "" {
		return &Missing{Peer: Before, Why: "no commit is named", Remedy: "--before COMMIT"}
	}
	program, err := buildAt(ctx, commit, filepath.Join(p.dir, "before"))
	if err != nil {
		return &Missing{Peer: Before, Why: fmt.Sprintf("commit %.12s cannot be built: %v", commit, err), Remedy: "git fetch --unshallow"}
	}
	p.programs[Before] = program
	return nil
}

// dropIn makes the command weft and its libibverbs, or says why there is none.
func (p *Peers) dropIn(ctx context.Context) *Missing {
	if runtime.GOOS != "linux" {
		return &Missing{Peer: Perftest, Why: "its programs are written for Linux"}
	}
	if _, err := exec.LookPath(perftestName(raw(Stream, maxSize).with(Perftest, Write))); err != nil {
		return &Missing{Perftest, "perftest is not installed", "apt-get install perftest"}
	}
	weft := filepath.Join(p.dir, "weft")
	root, err := said(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/weft-rdma/weft")
	if err == nil {
		_, err = said(ctx, "go", "build", "-C", root, "-o", weft, "./cmd/weft")
	}
	if err == nil {
		p.libibverbs, err = said(ctx, weft, "run", "--build", "--source", root)
	}
	if err != nil {
		return &Missing{Peer: Perftest, Why: fmt.Sprintf("its library cannot be built: %v", err), Remedy: "apt-get install gcc libibverbs-dev"}
	}
	p.programs[Perftest] = weft
	return nil
}

// said runs a command and returns what it prints.
func said(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		return "", fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(e.Stderr))
	}
	return string(bytes.TrimSpace(out)), err
}

// makeServed makes the directory for those that are served.
func (p *Peers) makeServed() (err error) {
	parent := inMemory
	if st, err := os.Stat(parent); err != nil || !st.IsDir() {
		parent = p.dir
	}
	p.served, err = os.MkdirTemp(parent, "weft-bench-")
	return err
}

// compile makes a peer's program, or says why there is none.
func (p *Peers) compile(ctx context.Context, peer Peer, source string, flags []string, debian string) *Missing {
	if runtime.GOOS != "linux" {
		return &Missing{Peer: peer, Why: "its program is written for Linux"}
	}
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	if _, err := exec.LookPath(compiler); err != nil {
		return &Missing{peer, fmt.Sprintf("there is no C compiler %s", compiler), "apt-get install gcc libc6-dev"}
	}
	file := filepath.Join(p.dir, string(peer))
	args := append([]string{"-O2", "-o", file, filepath.Join(p.dir, "c", source)}, flags...)
	if said, err := exec.CommandContext(ctx, compiler, args...).CombinedOutput(); err != nil {
		return &Missing{peer, fmt.Sprintf("%s cannot be compiled: %s", source, complaint(said)), "apt-get install " + debian}
	}
	p.programs[peer] = file
	return nil
}

// complaint is the compiler's first line that reports an error.
func complaint(said []byte) string {
	for line := range strings.Lines(string(said)) {
		if _, what, ok := strings.Cut(line, "error: "); ok {
			return strings.TrimSpace(what)
		}
	}
	first, _, _ := strings.Cut(string(said), "\n")
	return first
}

// missing reports whether peer is not here.
func (p *Peers) missing(peer Peer) bool {
	for _, m := range p.Missing {
		if m.Peer == peer {
			return true
		}
	}
	return false
}

func (p *Peers) close() error {
	return errors.Join(p.wire.close(), os.RemoveAll(p.dir), os.RemoveAll(p.served))
}
