package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// fio moves 16 MiB in blocks of 64 KiB. A message of its send needs a receive: on an rnic
// the server needs room for all of them, as it posts them late; on an rc device they wait.
func fio() []row {
	rows := []row{}
	for _, job := range []struct {
		verb     string
		depth    int
		personas []string
	}{{"write", 16, both}, {"read", 16, both}, {"send", 300, both}, {"send", 8, rc}} {
		rows = append(rows, row{
			name: fmt.Sprintf("fio ioengine=rdma verb=%s, server's iodepth=%d", job.verb, job.depth), pkg: "fio", personas: job.personas, needs: []string{"fio"},
			scene: func(ctx context.Context, s *stage) error { return s.fio(ctx, job.verb, job.depth) },
		})
	}
	return rows
}

// fio runs server and client. It exits with status 0 at some failures, so its text counts.
func (s *stage) fio(ctx context.Context, verb string, depth int) error {
	const common = "ioengine=rdma bs=64k size=16m "
	if err := s.job("server.fio", fmt.Sprintf("[r] %sport=%d rw=read iodepth=%d", common, s.port, depth)); err != nil {
		return err
	}
	if err := s.job("client.fio", fmt.Sprintf("[s] %shostname=127.0.0.1 port=%d verb=%s rw=write iodepth=1 iodepth_batch_complete=1", common, s.port, verb)); err != nil {
		return err
	}
	server, err := s.serve(ctx, "fio server.fio")
	if err != nil {
		return err
	}
	if err := s.client(ctx, "fio client.fio", "err= 0", "io=16.0MiB"); err != nil {
		return err
	}
	if verb == "send" {
		return server.wait(ctx, "err= 0", "io=16.0MiB")
	}
	return server.wait(ctx, "err= 0")
}

// job writes a job file: one setting a line.
func (s *stage) job(name, settings string) error {
	return os.WriteFile(filepath.Join(s.dir, name), []byte(strings.ReplaceAll(settings, " ", "\n")+"\n"), 0o644)
}
