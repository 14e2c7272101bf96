package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func TestAServerTellsOfEachPeerThatItCouldNotServeInOneLine(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    options
		log  func(*slog.Logger)
		want string
	}{
		{"a failure", options{}, func(l *slog.Logger) { l.Warn("failed", "peer", "192.0.2.1:7", "err", errors.New("why")) },
			"weft: failed: 192.0.2.1:7: why\n"},
		{"one of two lines", options{}, func(l *slog.Logger) { l.Warn("failed", "err", errors.Join(errors.New("this"), errors.New("that"))) },
			"weft: failed: this: that\n"},
		{"a name", options{}, func(l *slog.Logger) {
			l.Warn("failed", "folder", "/a\nweft: b\x1b[2J", "err", &fs.PathError{Op: "open", Path: "a\nb", Err: fs.ErrExist})
		}, `weft: failed: '/a'$'\n''weft: b'$'\033''[2J': open 'a'$'\n''b': file already exists` + "\n"},
		{"numbers", options{}, func(l *slog.Logger) {
			l.Warn("more were refused", "times", 758, "origins", 1, "last reason", "full", "within", time.Minute)
		}, "weft: more were refused: times 758: origins 1: full: within 1m0s\n"},
		{"its own end", options{}, func(l *slog.Logger) { l.Warn("failed", "err", fmt.Errorf("start-up: %w", context.Canceled)) }, ""},
		{"less than a failure", options{}, func(l *slog.Logger) { l.Info("connected") }, ""},
		{"off", options{logLevel: "off"}, func(l *slog.Logger) { l.Warn("failed") }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			cmd := &cobra.Command{Use: "weft"}
			cmd.SetErr(&out)
			tt.log(tt.o.notices(cmd, slog.New(slog.DiscardHandler), slog.LevelWarn))
			if out.String() != tt.want {
				t.Errorf("it said %q, want %q", out.String(), tt.want)
			}
		})
	}
}
