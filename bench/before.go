// An older commit of Weft: its own bench is built, and measures one row.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"
)

// beforeCommit is the last commit before small messages were made cheaper.
const beforeCommit = "2bbb3befed96363b9f099140f8ae85d7dc027419"

// buildAt builds this command as it was at commit, below dir, and returns the program's file.
func buildAt(ctx context.Context, commit, dir string) (program string, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	root, err := said(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/weft-rdma/weft")
	if err != nil {
		return "", err
	}
	archive := filepath.Join(dir, "weft.tar")
	program = filepath.Join(dir, "bench.exe")
	for _, command := range [][]string{
		{"git", "-C", root, "archive", "--output", archive, commit},
		{"tar", "-C", dir, "-xf", archive},
		{"go", "build", "-C", filepath.Join(dir, "bench"), "-o", program, "."},
	} {
		if _, err := said(ctx, command[0], command[1:]...); err != nil {
			return "", err
		}
	}
	return program, os.Remove(archive)
}

// measureBy has a program that buildAt has built measure what only matches.
func measureBy(ctx context.Context, program, only string, more ...string) (d Document, err error) {
	args := append([]string{"--json", "-", "--only", only}, more...)
	cmd := exec.CommandContext(ctx, program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if jerr := json.Unmarshal(out, &d); jerr != nil {
		return d, errors.Join(err, fmt.Errorf("%s: %w: %s", program, jerr, bytes.TrimSpace(stderr.Bytes())))
	}
	return d, nil // rows that failed say so
}

// A before does samples by having the older bench measure a row for one round.
type before struct{ unverified }

func (before) prepare(context.Context, Job) (Ready, serve, error) {
	return Ready{}, func(over <-chan struct{}) (Served, error) {
		<-over
		return Served{}, nil
	}, nil
}

func (before) initiate(ctx context.Context, job Job, _ Ready) (s Sample, err error) {
	row := job.Workload.with(Weft, job.Workload.Op).String()
	args := []string{"--rounds", "1", "--sample", job.Sample.String(), "--congestion", "system"}
	if job.Congestion != "" {
		args[len(args)-1] = job.Congestion
	}
	d, err := measureBy(ctx, job.Program, "^"+regexp.QuoteMeta(row)+"$", args...)
	if err != nil {
		return s, err
	}
	for _, r := range d.Results {
		switch {
		case r.Peer != Weft:
		case r.Error != "":
			return s, errors.New(r.Error)
		default:
			s.Messages, s.Total, s.Elapsed = uint64(r.Median), uint64(r.Median), time.Second
			s.CPU = time.Duration(r.CPU * r.Median)
			return s, nil
		}
	}
	return s, fmt.Errorf("the older bench has no row %q", row)
}
