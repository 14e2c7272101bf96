package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// fio moves 16 MiB in blocks of 64 KiB. A message of its send needs a receive: the server
// needs room for all of them, as it posts them late, or --patient. It accepts connections with
// an RNR retry count of 0: an rc device fails like a channel adapter.
func fio() []row {
	rows := []row{}
	for _, job := range []struct {
		verb  string
		depth int
		flags string
	}{{"write", 16, ""}, {"read", 16, ""}, {"send", 300, ""}, {"send", 8, "--patient"}} {
		name := fmt.Sprintf("fio ioengine=rdma verb=%s, server's iodepth=%d", job.verb, job.depth)
		if job.flags != "" {
			name += ", weft run " + job.flags
		}
		rows = append(rows, row{
			name: name, pkg: "fio", personas: both, needs: []string{"fio"}, flags: job.flags,
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
