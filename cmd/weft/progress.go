package main

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/weft-rdma/weft/cmd/weft/internal/perf"
)

// progress shows how far a measurement is, when standard error is a terminal.
// The returned function clears it away.
func (f *perfFlags) progress(cfg *perf.Config) (done func()) {
	if f.cmd.ErrOrStderr() != os.Stderr || !terminal(os.Stderr) {
		return func() {}
	}
	bar := progressbar.NewOptions(1,
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetDescription("measuring"),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionSetWidth(40),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
	cfg.Progress = func(step, steps int) {
		bar.ChangeMax(steps)
		bar.Set(step)
	}
	return func() { bar.Finish() }
}

func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
