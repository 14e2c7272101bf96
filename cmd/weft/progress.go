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

// A transferBar shows how far a transfer of so many octets is, when standard error
// is a terminal.
type transferBar struct{ bar *progressbar.ProgressBar }

// bar shows what is being done, and how much of it is left.
func (m *mounts) bar(what string, octets int64) *transferBar {
	if m.cmd.ErrOrStderr() != os.Stderr || !terminal(os.Stderr) || octets == 0 {
		return new(transferBar)
	}
	b := &transferBar{progressbar.NewOptions64(octets,
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionSetDescription(what),
		progressbar.OptionShowBytes(true),
		progressbar.OptionSetWidth(40),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)}
	m.telling.Lock()
	defer m.telling.Unlock()
	m.shown = b
	return b
}

func (b *transferBar) add(octets int64) {
	if b.bar != nil {
		b.bar.Add64(octets)
	}
}

// clear makes room for a line of text.
func (b *transferBar) clear() {
	if b.bar != nil {
		b.bar.Clear()
	}
}

func (b *transferBar) done() {
	if b.bar != nil {
		b.bar.Finish()
	}
}

func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
