// The audit: rows, claims and exclusions laid side by side.

package conformance

import (
	"cmp"
	"fmt"
	"path"
	"slices"
)

// An Audit is the account of all requirements. It is made once and read only.
type Audit struct {
	Tables     []Table
	Exclusions []Exclusion
	Problems   []Problem // what is to be mended; empty when all is well

	claims   map[string][]Claim // by id, without repetition, in the order of test names
	excluded map[string]Exclusion
}

// New audits the module whose root is given against the repository's tables.
// An error means that the account could not be drawn up; what is wrong in the
// account itself is in Problems.
func New(root string) (*Audit, error) {
	tables, err := Tables()
	if err != nil {
		return nil, err
	}
	exclusions, err := Exclusions()
	if err != nil {
		return nil, err
	}
	claims, problems, err := Claims(root)
	if err != nil {
		return nil, err
	}
	return newAudit(tables, exclusions, claims, problems), nil
}

func newAudit(tables []Table, exclusions []Exclusion, claims []Claim, problems []Problem) *Audit {
	a := &Audit{
		Tables:     tables,
		Exclusions: exclusions,
		Problems:   slices.Clone(problems),
		claims:     make(map[string][]Claim),
		excluded:   make(map[string]Exclusion),
	}
	known := make(map[string]bool)
	for _, t := range tables {
		for _, r := range t.Rows {
			known[r.ID] = true
		}
	}
	for _, c := range claims {
		switch {
		case !known[c.ID]:
			a.problem(c.Place, "%s claims %s, which is in no table", c.Test, c.ID)
		case slices.ContainsFunc(a.claims[c.ID], func(o Claim) bool { return o.Test == c.Test }):
			a.problem(c.Place, "%s claims %s twice", c.Test, c.ID)
		default:
			a.claims[c.ID] = append(a.claims[c.ID], c)
		}
	}
	for _, list := range a.claims {
		slices.SortFunc(list, func(x, y Claim) int { return cmp.Compare(x.Test, y.Test) })
	}
	for _, e := range exclusions {
		place := path.Join("conformance", e.Place)
		if !known[e.ID] {
			a.problem(place, "%s is excluded and is in no table", e.ID)
			continue
		}
		a.excluded[e.ID] = e
		if claims := a.Claims(e.ID); len(claims) > 0 {
			a.problem(place, "%s is excluded and claimed by %s: one of the two is wrong", e.ID, claims[0].Test)
		}
	}
	for _, t := range tables {
		for _, r := range t.Rows {
			if r.Level.Mandatory() && !a.Settled(r.ID) {
				a.problem("", "%s (%s, §%s) %s has no test.\n\tRequirement: %s\n\tTest idea:   %s", r.ID, t.Title, r.Section, r.Level, r.Requirement, r.TestIdea)
			}
		}
	}
	return a
}

func (a *Audit) problem(place, format string, args ...any) {
	a.Problems = append(a.Problems, Problem{place, fmt.Sprintf(format, args...)})
}

// Claims returns the claims of a row, those of other modules too.
func (a *Audit) Claims(id string) []Claim { return a.claims[id] }

// Claimed reports whether a test that "go test ./..." runs claims the row.
func (a *Audit) Claimed(id string) bool {
	return slices.ContainsFunc(a.claims[id], func(c Claim) bool { return c.Module == "" })
}

// Excluded returns the exclusion of a row, if there is one.
func (a *Audit) Excluded(id string) (Exclusion, bool) {
	e, ok := a.excluded[id]
	return e, ok
}

// Settled reports whether the row is claimed or excluded.
func (a *Audit) Settled(id string) bool {
	_, excluded := a.excluded[id]
	return excluded || a.Claimed(id)
}
