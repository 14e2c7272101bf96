package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAFileThatWasWrittenWrongIsNoticed(t *testing.T) {
	w := Workload{Peer: GoNFS, Shape: File, Op: Write, Size: maxSize, Connections: 4}
	s, err := newShare(Job{Workload: w, Seed: 3, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.remove()
	f, err := os.OpenFile(filepath.Join(s.dir, fileName), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write := func(p []byte, at int64) {
		t.Helper()
		if _, err := f.WriteAt(p, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.check(w, 4); err == nil {
		t.Error("nothing is in the file after 4 blocks were written, and nobody says so")
	}
	write(s.block, 0)
	if err := s.check(w, 4); err != nil {
		t.Error(err)
	}
	write([]byte{s.block[7] ^ 1}, 7)
	if err := s.check(w, 4); err == nil {
		t.Error("a wrong octet went unnoticed")
	}
}

// TestEveryServerHasTheFile reads and writes with each server of files, in this
// process.
func TestEveryServerHasTheFile(t *testing.T) {
	e, err := newEnd()
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	for _, g := range []group{files(FileBandwidth, Write, maxSize, 4), files(FileRate, Read, 4<<10, 16)} {
		for _, w := range g.all() {
			t.Run(w.String(), func(t *testing.T) {
				job := Job{Workload: w, Sample: 1, Limit: sampleGrace, Seed: 7, Dir: t.TempDir()}
				d := e.driver(w.Peer)
				ready, serve, err := d.prepare(t.Context(), job)
				if err != nil {
					t.Fatal(err)
				}
				over, served := make(chan struct{}), make(chan error, 1)
				go func() {
					_, err := serve(over)
					served <- err
				}()
				s, err := d.initiate(t.Context(), job, ready)
				if err != nil || s.Messages == 0 {
					t.Errorf("sample = %+v, %v", s, err)
				}
				close(over)
				if err := <-served; err != nil {
					t.Errorf("target: %v", err)
				}
				if err := d.verify(job, s.Total); err != nil {
					t.Errorf("verify: %v", err)
				}
			})
		}
	}
}
