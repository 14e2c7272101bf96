// Rules: what may be done where.

package confine

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An Access is what may be done.
type Access int

const (
	Read    Access = iota // read files, list directories
	Execute               // read, and execute programs
	Change                // read, write, make, move and remove
)

// A Rule permits an access to a file, or to a directory and everything below.
type Rule struct {
	Path string
	Access
}

// A place is a rule, and what its path led to when it was looked up.
type place struct {
	Rule
	info fs.FileInfo
}

// Rules permit what one of them permits. They were looked up, and stay the same.
type Rules struct{ places []place }

// Look looks the paths of rules up. It leaves out what does not exist, unless needed.
func Look(rules []Rule, needed ...string) (*Rules, error) {
	all := new(Rules)
	for _, r := range rules {
		path, err := filepath.Abs(r.Path)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(path)
		if err != nil {
			if slices.Contains(needed, r.Path) {
				return nil, err
			}
			continue
		}
		all.places = append(all.places, place{Rule{path, r.Access}, info})
	}
	slices.SortStableFunc(all.places, func(a, b place) int { return cmp.Compare(a.Path, b.Path) })
	return all, nil
}

// Permits reports whether r permits what others do, as long as the paths of r lead to
// where they led.
func (r *Rules) Permits(others *Rules) bool {
	return !slices.ContainsFunc(others.places, func(o place) bool { return !r.permits(o) })
}

func (r *Rules) permits(o place) bool {
	return slices.ContainsFunc(r.places, func(p place) bool {
		if o.Access != Read && o.Access != p.Access {
			return false
		}
		if p.Path == o.Path {
			return os.SameFile(p.info, o.info)
		}
		if !within(o.Path, p.Path) {
			return false
		}
		now, err := os.Stat(p.Path)
		return err == nil && os.SameFile(p.info, now)
	})
}

// within reports whether a path is below a directory.
func within(path, dir string) bool {
	rest, err := filepath.Rel(dir, path)
	return err == nil && rest != ".." && !strings.HasPrefix(rest, ".."+string(filepath.Separator))
}

// String lists the paths by what may be done there.
func (r *Rules) String() string {
	var parts []string
	for _, what := range []struct {
		Access
		name string
	}{{Change, "change"}, {Read, "read"}, {Execute, "execute"}} {
		var paths []string
		for _, p := range r.places {
			if p.Access == what.Access {
				paths = append(paths, p.Path)
			}
		}
		if paths != nil {
			parts = append(parts, fmt.Sprintf("%s %s", what.name, strings.Join(slices.Compact(paths), " ")))
		}
	}
	return strings.Join(parts, "; ")
}
