// This file is about other implementations of TLS on this machine: OpenSSL, by Python's
// ssl, and GnuTLS, by gnutls-cli. They speak RPC with TLS (RFC 9289), and iWARP over TLS
// (docs/tls.md): some messages by hand, and whole transfers through a relay.

package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/interop/internal/suite"
)

var (
	//go:embed scripts/authtls.py
	opensslClient string
	//go:embed scripts/starttls.py
	opensslServer string
	//go:embed scripts/iwarptls.py
	opensslIWARP string
	//go:embed scripts/tlsrelay.py
	opensslRelay string
)

// stacks runs the cases, which need no guest.
func (h *harness) stacks(ctx context.Context) {
	for _, s := range []struct {
		name string
		run  func(c *suite.Case, s *served) error
		tls  bool // of weft serve
	}{
		{"tls/openssl/client", overTCP(byHand(opensslClient)), true},
		{"tls/openssl/server", copiedFromOpenSSL, false},
		{"tls/mpa/openssl/by-hand", byHand(opensslIWARP), true},
		{"tls/mpa/openssl/client", throughOpenSSL("client"), true},
		{"tls/mpa/openssl/server", throughOpenSSL("server"), false},
		{"tls/mpa/gnutls/client", throughGnuTLS(false), true},
		{"tls/mpa/gnutls/rekey", throughGnuTLS(true), true},
	} {
		h.suite.Run(ctx, s.name, func(c *suite.Case) error { return h.onServed(c, s.tls, s.run) })
	}
}

// A served is weft serve on this machine, with certificates for whoever talks to it.
type served struct {
	*harness
	certificates
	dir       string // that is served
	rdma, tcp string // addresses
}

// onServed starts weft serve, with or without TLS, and runs a case on it.
func (h *harness) onServed(c *suite.Case, secure bool, run func(*suite.Case, *served) error) error {
	certs, err := h.certify(c, "localhost", "127.0.0.1")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "weft-served-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &served{harness: h, certificates: certs, dir: dir}
	args := []string{"serve", dir, "--listen", "127.0.0.1:0", "--tcp", "127.0.0.1:0", "--portmap", "off", "--squash", "none"}
	if secure {
		args = append(args, certs.flags()...)
	}
	cmd := exec.CommandContext(c, h.weft, args...)
	pipe, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	lines := bufio.NewScanner(pipe)
	for s.tcp == "" && lines.Scan() {
		c.Logf("%s", lines.Text())
		s.note(lines.Text())
	}
	if s.tcp == "" || s.rdma == "" {
		return errors.New("weft serve does not say where it listens")
	}
	go io.Copy(io.Discard, pipe)
	return run(c, s)
}

// note takes the addresses from what weft serve says.
func (s *served) note(line string) {
	if addr, ok := strings.CutPrefix(line, "listening on "); ok {
		s.rdma = addr
	}
	if _, addr, ok := strings.Cut(line, "over TCP on "); ok {
		s.tcp = addr
	}
}

// python runs a script of this directory with arguments.
func python(ctx context.Context, script string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "python3", append([]string{"-c", script}, args...)...)
}

// overTCP runs a case for what is served over RDMA at what is served over TCP.
func overTCP(run func(*suite.Case, *served) error) func(*suite.Case, *served) error {
	return func(c *suite.Case, s *served) error {
		s.rdma = s.tcp
		return run(c, s)
	}
}

// byHand has a script talk to weft serve.
func byHand(script string) func(*suite.Case, *served) error {
	return func(c *suite.Case, s *served) error {
		host, port, _ := net.SplitHostPort(s.rdma)
		out, err := python(c, script, host, port, s.file("ca.pem"), s.file("cert.pem"), s.file("key.pem")).CombinedOutput()
		c.Logf("%s", out)
		if err != nil || !strings.HasSuffix(string(out), "done\n") {
			return fmt.Errorf("the client: %v: %s", err, lastLine(string(out)))
		}
		return nil
	}
}

// listening starts a script that says where it listens.
func listening(c *suite.Case, cmd *exec.Cmd) (stop func(), port string, err error) {
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	var complaint strings.Builder
	cmd.Stderr = &complaint
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	stop = func() {
		cmd.Process.Kill()
		cmd.Wait()
		c.Logf("%s", complaint.String())
	}
	r := bufio.NewReader(pipe)
	line, err := r.ReadString('\n')
	if err != nil {
		stop()
		return nil, "", fmt.Errorf("%s does not listen: %s", cmd.Path, lastLine(complaint.String()))
	}
	go io.Copy(io.Discard, r)
	return stop, strings.TrimSpace(strings.TrimPrefix(line, "listening on ")), nil
}

// copiedFromOpenSSL has weft cp talk RPC with TLS to OpenSSL, with a plain server behind it.
func copiedFromOpenSSL(c *suite.Case, s *served) error {
	host, port, _ := net.SplitHostPort(s.tcp)
	stop, port, err := listening(c, python(c, opensslServer, "0", s.file("cert.pem"), s.file("key.pem"), s.file("ca.pem"), host, port))
	if err != nil {
		return err
	}
	defer stop()
	return s.copies(c, s.self, port, append(s.flags(), "--tcp")...)
}

// throughOpenSSL copies over RDMA through a relay that is one side of TLS.
func throughOpenSSL(side string) func(*suite.Case, *served) error {
	return func(c *suite.Case, s *served) error {
		host, port, _ := net.SplitHostPort(s.rdma)
		stop, port, err := listening(c, python(c, opensslRelay, side, host, port, s.file("ca.pem"), s.file("cert.pem"), s.file("key.pem")))
		if err != nil {
			return err
		}
		defer stop()
		if side == "server" {
			return s.copies(c, s.self, port, s.flags()...)
		}
		return s.copies(c, s.self, port)
	}
}

// copies copies a file to the server at a port, and from there, and compares.
func (s *served) copies(c *suite.Case, file, port string, flags ...string) error {
	url, copied := "nfs://127.0.0.1:"+port+"/file", filepath.Join(s.dir, "copy")
	for _, pair := range [][2]string{{file, url}, {url, copied}} {
		args := append([]string{"cp", "--verify", pair[0], pair[1]}, flags...)
		out, err := exec.CommandContext(c, s.weft, args...).CombinedOutput()
		c.Logf("weft %s\n%s", strings.Join(args, " "), out)
		if err != nil {
			return fmt.Errorf("weft cp: %w: %s", err, lastLine(string(out)))
		}
	}
	if out, err := exec.CommandContext(c, "cmp", file, copied).CombinedOutput(); err != nil {
		return fmt.Errorf("the copy differs: %s", out)
	}
	return nil
}

// throughGnuTLS copies over RDMA through gnutls-cli, which writes what it receives octet by
// octet: a short file. With rekey it changes its keys, and asks the server to, before the
// start-up of MPA.
func throughGnuTLS(rekey bool) func(*suite.Case, *served) error {
	return func(c *suite.Case, s *served) error {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer ln.Close()
		r := &gnutlsRelay{served: s, rekey: rekey}
		go func() {
			for {
				nc, err := ln.Accept()
				if err != nil {
					return // the case is over
				}
				go r.relay(c, nc)
			}
		}()
		_, port, _ := net.SplitHostPort(ln.Addr().String())
		file, err := s.short()
		if err != nil {
			return err
		}
		defer os.Remove(file)
		if err := s.copies(c, file, port); err != nil {
			return err
		}
		if n := r.changes.Load(); rekey != (n > 0) {
			return fmt.Errorf("GnuTLS has changed its key %d times", n)
		}
		return nil
	}
}

// short makes a file of a mebibyte.
func (s *served) short() (name string, err error) {
	from, err := os.Open(s.self)
	if err != nil {
		return "", err
	}
	defer from.Close()
	to, err := os.CreateTemp("", "weft-short-")
	if err != nil {
		return "", err
	}
	_, err = io.CopyN(to, from, 1<<20)
	return to.Name(), errors.Join(err, to.Close())
}

// A gnutlsRelay carries plain connections on over TLS, each by a gnutls-cli.
type gnutlsRelay struct {
	*served
	rekey   bool
	changes atomic.Int64 // of keys
}

func (r *gnutlsRelay) relay(c *suite.Case, nc net.Conn) {
	defer nc.Close()
	host, port, _ := net.SplitHostPort(r.rdma)
	args := []string{"--priority=NORMAL:-VERS-ALL:+VERS-TLS1.3", "--alpn=iwarp", "--logfile=/dev/stderr",
		"--x509cafile=" + r.file("ca.pem"), "--x509certfile=" + r.file("cert.pem"), "--x509keyfile=" + r.file("key.pem"), "--port=" + port, host}
	if r.rekey {
		args = append([]string{"--inline-commands"}, args...)
	}
	cmd := exec.CommandContext(c, "gnutls-cli", args...)
	var said strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nc, nc, &said
	cmd.WaitDelay = time.Second // to read a connection that goes on when gnutls-cli has ended
	if r.rekey {                // gnutls-cli takes a command at the beginning only
		cmd.Stdin = io.MultiReader(strings.NewReader("^rekey^\n"), nc)
	}
	err := cmd.Run()
	r.changes.Add(int64(strings.Count(said.String(), "Rekey was completed")))
	c.Logf("%s\ngnutls-cli: %v", said.String(), err)
}
