// The live view, a program of bubbletea.

package top

import (
	"context"
	"fmt"
	"io"
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// fetched is a sample, or why there is none.
type fetched struct {
	sample *Sample
	err    error
}

// tick is when to fetch next.
type tick struct{}

// A program is the state of the live view.
type program struct {
	ctx       context.Context
	source    *Source
	interval  time.Duration
	prev, cur *Sample // nil before the first answer
	gone      error   // why there was no answer last
	since     time.Time
	width     int
	height    int
}

// Run shows the live view until the user quits, or the context ends.
func Run(ctx context.Context, source *Source, interval time.Duration, in io.Reader, out io.Writer) error {
	p := program{ctx: ctx, source: source, interval: interval}
	_, err := tea.NewProgram(p, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithAltScreen(), tea.WithoutSignalHandler()).Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// Once writes the state and the rates of one interval.
func Once(ctx context.Context, source *Source, interval time.Duration, out io.Writer) error {
	prev, err := source.Fetch(ctx)
	if err != nil {
		return err
	}
	select {
	case <-time.After(interval):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	cur, err := source.Fetch(ctx)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, Render(source.String(), prev, cur, 0, 0))
	return err
}

func (p program) fetch() tea.Msg {
	s, err := p.source.Fetch(p.ctx)
	return fetched{s, err}
}

// Init implements tea.Model.
func (p program) Init() tea.Cmd { return p.fetch }

// Update implements tea.Model.
func (p program) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.KeyMsg:
		switch msg.String() {
		case "q", "esc", "ctrl+c":
			return p, tea.Quit
		}
	case tea.WindowSizeMsg:
		p.width, p.height = msg.Width, msg.Height
	case tick:
		return p, p.fetch
	case fetched:
		p.take(msg)
		return p, tea.Tick(p.interval, func(time.Time) tea.Msg { return tick{} })
	}
	return p, nil
}

// take takes what a fetch has brought.
func (p *program) take(f fetched) {
	if f.err != nil {
		if p.gone == nil {
			p.since = time.Now()
		}
		p.gone = f.err
		return
	}
	p.prev, p.cur, p.gone = p.cur, f.sample, nil
	if p.prev == nil {
		p.prev = p.cur
	}
}

// View implements tea.Model.
func (p program) View() string {
	const help = "q quits"
	height := max(p.height-1, 0)
	switch {
	case p.gone != nil:
		text := fmt.Sprintf("%s does not answer since %s: %v", p.source, p.since.Format(time.TimeOnly), p.gone)
		return fit([]string{text, "", "Trying again. It shows here as soon as it answers."}, p.width, height) + help
	case p.cur == nil:
		return fit([]string{"Asking " + p.source.String()}, p.width, height) + help
	}
	return Render(p.source.String(), p.prev, p.cur, p.width, height) + help
}
