// Mutations: small changes of the source that break a rule on purpose, to find out which
// claiming tests notice.

package conformance

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed mutations/*.txt
var mutations embed.FS

// A Mutation breaks the rules of some rows in one file. It is written as a hunk
// of a diff without line numbers:
//
//	MPA-4.3-3 MPA-4.3-4: markers stand one octet late
//	mpa/internal/fpdu/marker.go
//	 	context, if the line alone is not unique
//	-	lines to replace
//	+	their replacement
//
// White space at both ends of lines is ignored.
type Mutation struct {
	Rows  []string
	Title string
	File  string // below the module's root
	Place string // file:line, for messages

	old, new []string // lines, trimmed
}

// Mutations returns the mutations of the repository.
func Mutations() ([]Mutation, error) { return readMutations(mutations) }

func readMutations(fsys fs.FS) (all []Mutation, err error) {
	files, err := fs.Glob(fsys, "mutations/*.txt")
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, name := range files {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return nil, err
		}
		list, err := parseMutations(path.Join("conformance", name), string(text))
		all, errs = append(all, list...), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// parseMutations parses the mutations of one file. Blank lines separate them; lines that
// begin with # are comments.
func parseMutations(name, text string) (list []Mutation, err error) {
	var errs []error
	var block []string
	begin := 0
	for i, line := range append(strings.Split(text, "\n"), "") {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) != "":
			if block == nil {
				begin = i + 1
			}
			block = append(block, line)
		case block != nil:
			m, err := parseMutation(block)
			m.Place = fmt.Sprintf("%s:%d", name, begin)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", m.Place, err))
			} else {
				list = append(list, m)
			}
			block = nil
		}
	}
	return list, errors.Join(errs...)
}

func parseMutation(lines []string) (m Mutation, err error) {
	if len(lines) < 3 {
		return m, errors.New("expected a line with rows, one with the file, and a hunk")
	}
	rows, title, ok := strings.Cut(lines[0], ": ")
	if m.Rows = strings.Fields(rows); !ok || len(m.Rows) == 0 {
		return m, fmt.Errorf("%q: expected rows, a colon, and what the mutation does", lines[0])
	}
	m.Title, m.File = title, lines[1]
	for _, line := range lines[2:] {
		text := strings.TrimSpace(line[1:])
		switch line[0] {
		case ' ', '\t':
			m.old, m.new = append(m.old, text), append(m.new, text)
		case '-':
			m.old = append(m.old, text)
		case '+':
			m.new = append(m.new, text)
		default:
			return m, fmt.Errorf("%q: expected a line of a hunk, which begins with a blank, - or +", line)
		}
	}
	if len(m.old) == 0 || slices.Equal(m.old, m.new) {
		return m, errors.New("the hunk replaces nothing")
	}
	return m, nil
}

// Apply returns the source of the mutation's file with the rule broken. It fails unless
// the lines to replace are there exactly once.
func (m *Mutation) Apply(src []byte) ([]byte, error) {
	lines := strings.Split(string(src), "\n")
	at := -1
	for i := 0; i+len(m.old) <= len(lines); i++ {
		if !m.matches(lines[i:]) {
			continue
		}
		if at >= 0 {
			return nil, fmt.Errorf("%s: %q occurs more than once in %s: add lines of context", m.Place, m.old[0], m.File)
		}
		at = i
	}
	if at < 0 {
		return nil, fmt.Errorf("%s: %q and the lines after it are not in %s: update the mutation", m.Place, m.old[0], m.File)
	}
	return []byte(strings.Join(slices.Replace(lines, at, at+len(m.old), m.new...), "\n")), nil
}

func (m *Mutation) matches(lines []string) bool {
	for i, old := range m.old {
		if strings.TrimSpace(lines[i]) != old {
			return false
		}
	}
	return true
}

// Key identifies the mutation and the tests that should notice it. A result is valid as
// long as its key is the same.
func (m *Mutation) Key(tests []string) string {
	h := sha256.New()
	for _, part := range [][]string{{m.File}, m.old, m.new, tests} {
		fmt.Fprintf(h, "%q\n", part)
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}
