package main

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A flood of one kind of line does not fill the disk, and does not keep other lines out.
func TestLinesOfAKindAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(limitLines(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo})))
		for i := range 1000 {
			log.With("rnic", "weft0").Info("connection ended", "peer", fmt.Sprint(i))
		}
		log.Warn("something else")
		if n := strings.Count(out.String(), "connection ended"); n != linesOfKind {
			t.Errorf("%d lines were written, expected %d", n, linesOfKind)
		}
		if !strings.Contains(out.String(), "something else") {
			t.Error("another line was left out")
		}
		time.Sleep(logWindow)
		out.Reset()
		log.Info("connection ended", "peer", "1")
		if s := out.String(); !strings.Contains(s, "lines=900") || strings.Count(s, "connection ended") != 2 {
			t.Errorf("a minute later: %s", s)
		}
	})
}

func TestTheFormatOfTheLogIsChosen(t *testing.T) {
	for _, tt := range []struct {
		opts       options
		level      slog.Level
		begin      string
		writesInfo bool
	}{
		{options{format: "json"}, slog.LevelWarn, "{", false},
		{options{format: "json", logLevel: "info"}, slog.LevelInfo, "{", true},
		{options{format: "text", logLevel: "warn"}, slog.LevelWarn, "time=", false},
		{options{logLevel: "error"}, slog.LevelError, "time=", false},
	} {
		var out bytes.Buffer
		log, err := tt.opts.logger(&out)
		if err != nil {
			t.Fatal(err)
		}
		log.Info("below")
		if (out.Len() > 0) != tt.writesInfo {
			t.Errorf("%+v writes %q", tt.opts, out.String())
		}
		log.Log(t.Context(), tt.level, "text")
		if !strings.HasPrefix(out.String(), tt.begin) {
			t.Errorf("%+v writes %q", tt.opts, out.String())
		}
	}
	off := options{format: "json", logLevel: "off"}
	if log, err := off.logger(io.Discard); err != nil || log.Enabled(t.Context(), slog.LevelError) {
		t.Errorf("off: %v", err)
	}
}
