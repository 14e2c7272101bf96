// Exclusions: the rows that nothing in this repository could break.

package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// An Exclusion says why a row needs no test here.
type Exclusion struct {
	ID     string
	Reason string
	Place  string // file:line, for messages
}

// exclusionFile is the list, beside this file.
const exclusionFile = "excluded.tsv"

// Exclusions returns the exclusions of the repository in the order of the file. It fails
// if one has no reason or is repeated.
func Exclusions() ([]Exclusion, error) { return readExclusions(embedded) }

func readExclusions(fsys fs.FS) ([]Exclusion, error) { return readReasons(fsys, exclusionFile) }

// readReasons reads a list of rows with reasons.
func readReasons(fsys fs.FS, file string) ([]Exclusion, error) {
	text, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, err
	}
	var list []Exclusion
	seen := make(map[string]bool)
	err = readTSV(file, string(text), []string{"id", "reason"}, func(place string, f []string) error {
		e := Exclusion{ID: f[0], Reason: f[1], Place: place}
		if strings.TrimSpace(e.Reason) == "" {
			return fmt.Errorf("%s is listed without a reason", e.ID)
		}
		if seen[e.ID] {
			return errors.New(e.ID + " is listed twice")
		}
		seen[e.ID] = true
		list = append(list, e)
		return nil
	})
	return list, err
}
