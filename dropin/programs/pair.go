package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// pair runs the row's server, if it has one, and its client.
func (s *stage) pair(ctx context.Context) (err error) {
	r := s.row
	if r.same[0] != "" {
		if err := s.fill(r.same[0], 3<<20); err != nil {
			return err
		}
	}
	var server *process
	if r.server != "" {
		if server, err = s.serve(ctx, r.server); err != nil {
			return err
		}
	}
	if err := s.client(ctx, r.client, r.says...); err != nil {
		return err
	}
	if server != nil && !r.endless {
		err = server.wait(ctx, r.hears...)
	} else if server != nil {
		err = server.check(r.hears)
	}
	if err == nil && r.same[0] != "" {
		err = s.compare(ctx, r.same)
	}
	return err
}

// fill makes a file of random octets.
func (s *stage) fill(name string, size int) error {
	data := make([]byte, size)
	_, _ = rand.Read(data) // never fails
	return os.WriteFile(filepath.Join(s.dir, name), data, 0o644)
}

// compare waits until the second file begins with the first: a server may still be writing.
func (s *stage) compare(ctx context.Context, names [2]string) error {
	want, err := os.ReadFile(filepath.Join(s.dir, names[0]))
	if err != nil {
		return err
	}
	for {
		got, err := os.ReadFile(filepath.Join(s.dir, names[1]))
		if err == nil && bytes.HasPrefix(got, want) {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%s and %s differ", names[0], names[1])
		}
	}
}

// freePort is a port that nobody has, below those that the system gives out by itself:
// another program cannot get it in between.
func freePort() (int, error) {
	for range 100 {
		port := 10000 + mathrand.IntN(20000)
		if ln, err := net.Listen("tcp", fmt.Sprintf(":%d", port)); err == nil {
			return port, ln.Close()
		}
	}
	return 0, errors.New("there is no free port")
}

// listens looks for a socket in state LISTEN (0A) in the system's tables. It does not
// connect: some servers serve whoever comes first.
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
