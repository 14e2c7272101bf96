// Results of the mutations' last run.

package conformance

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// A Verdict is what the claiming tests of a row found of a mutation.
type Verdict string

const (
	Noticed  Verdict = "noticed"  // a test failed
	Hung     Verdict = "hung"     // no test failed within the time limit
	Survived Verdict = "survived" // all tests passed
)

// A Result is the verdict on a mutation for one of its rows.
type Result struct {
	ID      string
	Key     string // Mutation.Key
	Verdict Verdict
	Test    string // the one that noticed it, or hung
}

// ResultPath is the path of the results below the module's root; survivorFile has the
// explanations of survivors.
const (
	ResultPath   = "conformance/" + resultFile
	resultFile   = "mutated.tsv"
	survivorFile = "survivors.tsv"
)

var resultColumns = []string{"id", "key", "verdict", "test"}

// Results returns the committed results.
func Results() (Book, error) { return readResults(embedded) }

func readResults(fsys fs.FS) (Book, error) {
	text, err := fs.ReadFile(fsys, resultFile)
	if err != nil {
		return nil, err
	}
	return ParseResults(string(text))
}

// A Book holds results by row and key.
type Book map[[2]string]Result

// ParseResults reads a file of results.
func ParseResults(text string) (Book, error) {
	all := make(Book)
	err := readTSV(resultFile, text, resultColumns, func(_ string, f []string) error {
		r := Result{ID: f[0], Key: f[1], Verdict: Verdict(f[2]), Test: f[3]}
		switch r.Verdict {
		case Noticed, Hung, Survived:
		default:
			return fmt.Errorf("%s: verdict %q: expected %s, %s or %s", r.ID, r.Verdict, Noticed, Hung, Survived)
		}
		all.Add(r)
		return nil
	})
	return all, err
}

// Add adds a result.
func (b Book) Add(r Result) { b[[2]string{r.ID, r.Key}] = r }

// Format returns the text of the file of results, sorted.
func (b Book) Format() []byte {
	var s strings.Builder
	s.WriteString(strings.Join(resultColumns, "\t") + "\n")
	keys := slices.SortedFunc(maps.Keys(b), func(x, y [2]string) int { return slices.Compare(x[:], y[:]) })
	for _, k := range keys {
		r := b[k]
		fmt.Fprintf(&s, "%s\t%s\t%s\t%s\n", r.ID, r.Key, r.Verdict, r.Test)
	}
	return []byte(s.String())
}

// survivors returns the explanations of survivors by row.
func survivors(fsys fs.FS) (map[string]Exclusion, error) {
	list, err := readReasons(fsys, survivorFile)
	all := make(map[string]Exclusion)
	for _, e := range list {
		all[e.ID] = e
	}
	return all, err
}
