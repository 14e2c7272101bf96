package main

// This file runs one row: its folder, its port, and its processes.

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// testdata has the programs of ours that rows compile.
//
//go:embed testdata/*.c
var testdata embed.FS

// A stage is where a row runs as one persona.
type stage struct {
	*bench
	row     *row
	persona string
	dir     string
	port    int
	env     []string // of the programs
	flags   []string // of weft run, besides the row's
	note    string   // stands in the table
	ends    []*process
}

// try runs a row as one persona.
func (b *bench) try(ctx context.Context, r *row, persona string) (res result) {
	start := time.Now()
	res = result{row: r, persona: persona, missing: r.missing()}
	if res.missing != nil {
		return res
	}
	limit := b.limit
	if r.limit > 0 {
		limit = r.limit
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s := &stage{bench: b, row: r, persona: persona}
	defer endOrphans()
	defer s.end()
	res.err = s.run(ctx)
	res.took, res.note = time.Since(start), s.note
	if res.err != nil {
		res.tails = s.tails()
	}
	return res
}

func (s *stage) run(ctx context.Context) (err error) {
	if s.dir, err = s.folder(); err != nil {
		return err
	}
	if s.port, err = freePort(); err != nil {
		return err
	}
	if s.row.port != 0 {
		if s.port = s.row.port; listens(s.port) {
			return fmt.Errorf("port %d, which the program always uses, is taken", s.port)
		}
	}
	if s.row.tls {
		if s.flags, err = s.certify(ctx); err != nil {
			return err
		}
	}
	if s.row.scene != nil {
		return s.row.scene(ctx, s)
	}
	return s.pair(ctx)
}

// end ends all processes.
func (s *stage) end() {
	for _, p := range s.ends {
		p.end()
	}
}

// words are the words of a command, with the values of this stage.
func (s *stage) words(command string) []string {
	r := strings.NewReplacer("{port}", strconv.Itoa(s.port), "{host}", "127.0.0.1", "{dir}", s.dir, "{suite}", s.suiteDir(s.row.suite))
	words := strings.Fields(command)
	for i := range words {
		words[i] = r.Replace(words[i])
	}
	return words
}

// start starts a program on the library, with the row's flags of weft run and more.
func (s *stage) start(name, command string, flags ...string) (*process, error) {
	words := []string{s.weft, "run", "--library", s.libDir, "--persona", s.persona}
	words = slices.Concat(words, strings.Fields(s.row.flags), s.flags, flags)
	return s.launch(name, append(words, s.words(command)...))
}

// plain starts a program as it is.
func (s *stage) plain(name, command string) (*process, error) {
	return s.launch(name, s.words(command))
}

func (s *stage) launch(name string, words []string) (*process, error) {
	p, err := launch(name, s.dir, s.env, words)
	if err == nil {
		s.ends = append(s.ends, p)
	}
	return p, err
}

// serve starts a program on the library, and waits until it listens at the port.
func (s *stage) serve(ctx context.Context, command string) (*process, error) {
	p, err := s.start("server", command)
	if err != nil {
		return nil, err
	}
	return p, p.until(ctx, fmt.Sprintf("listen at port %d", s.port), func() bool { return listens(s.port) })
}

// client runs a program on the library to its end, and looks for what it should have said.
func (s *stage) client(ctx context.Context, command string, says ...string) error {
	p, err := s.start("client", command)
	if err != nil {
		return err
	}
	return p.wait(ctx, says...)
}

// compile compiles a program of testdata into the folder.
func (s *stage) compile(ctx context.Context, cc, name string, flags ...string) error {
	text, err := testdata.ReadFile("testdata/" + name + ".c")
	if err != nil {
		return err
	}
	source := filepath.Join(s.dir, name+".c")
	if err := os.WriteFile(source, text, 0o644); err != nil {
		return err
	}
	args := append([]string{"-O2", "-o", filepath.Join(s.dir, name), source}, flags...)
	_, err = output(exec.CommandContext(ctx, cc, args...))
	return err
}

// used checks that a process moved data by the device: it ran with --verbose.
func (p *process) used() error {
	for line := range strings.Lines(p.text()) {
		if _, counts, ok := strings.Cut(line, "weft: weft0 ("); ok && strings.Contains(counts, " queue pairs") && !strings.Contains(counts, "): 0 queue pairs") {
			return nil
		}
	}
	return fmt.Errorf("%s: it made no queue pair", p.name)
}

// tails are the last lines of what each end said.
func (s *stage) tails() string {
	var b strings.Builder
	for _, p := range s.ends[max(0, len(s.ends)-4):] {
		fmt.Fprintf(&b, "    --- %s: %s\n", p.name, strings.Join(slices.Compact(p.cmd.Args), " "))
		for line := range strings.Lines(lastLines(p.text(), 10)) {
			b.WriteString("    " + strings.TrimRight(line, "\n") + "\n")
		}
	}
	return b.String()
}
