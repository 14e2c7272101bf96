// This file draws progress bars.

package main

import (
	"fmt"
	"os"
	"time"
	"unicode"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/weft-rdma/weft/cmd/weft/internal/perf"
)

// progress shows the progress of a measurement if standard error is a terminal. The
// returned function clears it.
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

// A transferBar shows the progress of a transfer if standard error is a terminal: file,
// number of files, bytes, rate and time left.
type transferBar struct {
	bar         *progressbar.ProgressBar
	file, files int
}

// bar makes the bar for a transfer of so many bytes in so many files. With 0 bytes the
// total is unknown.
func (m *mounts) bar(bytes int64, files int) *transferBar {
	if m.cmd.ErrOrStderr() != os.Stderr || !terminal(os.Stderr) || files == 0 {
		return new(transferBar)
	}
	if bytes == 0 {
		bytes = -1
	}
	b := &transferBar{files: files, bar: progressbar.NewOptions64(bytes,
		progressbar.OptionSetWriter(os.Stderr),
		progressbar.OptionShowBytes(true),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionSetWidth(16),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)}
	m.stderrMu.Lock()
	defer m.stderrMu.Unlock()
	m.shown = b
	return b
}

// next shows the name of the next file.
func (b *transferBar) next(file fmt.Stringer) {
	if b.bar == nil {
		return
	}
	b.file = min(b.file+1, b.files)
	number := fmt.Sprintf("%d/%d ", b.file, b.files)
	b.bar.Describe(number + shorten(file.String(), titleWidth(columns(os.Stderr), len(number))))
}

const (
	maxTitle = 28 // columns that a file has beside its bar
	minTitle = 8  // where it has fewer it is left out
	barWidth = 51 // columns behind it: 100% || (999 MB/999 GB, 999 MB/s) [99m59s:99m59s]
)

// titleWidth is the width of the name of a file, for the width of the terminal and of
// the number before it. A line that does not fit would scroll each time.
func titleWidth(terminal, number int) int {
	width := min(maxTitle, terminal-number-barWidth)
	if width < minTitle {
		return 0
	}
	return width
}

// columns returns the width of a terminal.
func columns(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return 80
	}
	return width
}

// shorten cuts a path to a fixed width and keeps its end. It replaces characters that
// are not printable.
func shorten(path string, width int) string {
	if width == 0 {
		return ""
	}
	runes := []rune(path)
	for i, r := range runes {
		if !unicode.IsPrint(r) {
			runes[i] = '?'
		}
	}
	if len(runes) > width {
		runes = append([]rune("..."), runes[len(runes)-width+3:]...)
	}
	return fmt.Sprintf("%-*s", width, string(runes))
}

func (b *transferBar) add(bytes int64) {
	if b.bar != nil {
		b.bar.Add64(bytes)
	}
}

// clear clears the bar, for a line of text.
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
