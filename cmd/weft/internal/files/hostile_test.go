package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// A hostile tree lists what no file system could: several files of one name, in
// an order that suits it. An entry is "name", which is a file, "name/", which is a
// directory with what is listed under that, or "name -> target".
type hostile struct {
	Local
	lists map[string][]string // by the directory's name
	asked int                 // for listings
}

func (h *hostile) ReadDir(_ context.Context, name string) ([]*Info, error) {
	h.asked++
	var infos []*Info
	for _, entry := range h.lists[filepath.Base(name)] {
		info := new(Info)
		var directory, link bool
		if info.Name, _, link = strings.Cut(entry, " -> "); link {
			info.Mode = fs.ModeSymlink | 0o777
		} else if info.Name, directory = strings.CutSuffix(entry, "/"); directory {
			info.Mode = fs.ModeDir | 0o755
		} else {
			info.Mode = 0o644
		}
		infos = append(infos, info)
	}
	return infos, nil
}

func (h *hostile) Readlink(_ context.Context, name string) (string, error) {
	for _, entries := range h.lists {
		for _, entry := range entries {
			if link, target, ok := strings.Cut(entry, " -> "); ok && link == filepath.Base(name) {
				return target, nil
			}
		}
	}
	return "", fs.ErrNotExist
}

func (h *hostile) Open(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("evil")), nil
}

// A server whose directories contain themselves has a plan grow without end, by paths
// that grow longer.
func TestAPlanIsBoundedInOctets(t *testing.T) {
	name := strings.Repeat("n", 200)
	h := &hostile{lists: map[string][]string{name: {name + "/", name}}}
	failed := 0
	c := &Copier{Recursive: true, Failed: func(error) { failed++ }}
	p := &Plan{room: 1 << 20}
	src := step{from: Place{h, name}, to: Place{Local{}, name}, info: &Info{Name: name, Mode: fs.ModeDir | 0o755}}
	err := c.planFile(t.Context(), p, &src, 0)
	if !errors.Is(err, errTooLarge) || failed > 0 {
		t.Errorf("planned with %v, and %d files left out", err, failed)
	}
	bytes := 0
	for _, s := range p.steps {
		bytes += len(s.from.Path) + len(s.to.Path)
	}
	if bytes > 1<<20 || len(p.steps) == 0 {
		t.Errorf("%d steps with %d bytes of paths", len(p.steps), bytes)
	}
	if h.asked > len(p.steps)+1 {
		t.Errorf("%d directories listed for %d steps", h.asked, len(p.steps))
	}
}
