// The audit: it compares rows, claims, exclusions and mutations.

package conformance

import (
	"cmp"
	"fmt"
	"path"
	"slices"
)

// An Audit has all requirements with their claims and exclusions. It is immutable.
type Audit struct {
	Tables     []Table
	Exclusions []Exclusion
	Mutations  []Mutation
	Problems   []Problem // to be corrected

	known    map[string]bool    // ids
	claims   map[string][]Claim // by id, without duplicates, sorted by test
	excluded map[string]Exclusion

	trials    map[string][]Trial // by id
	results   Book
	survivors map[string]Exclusion // explanations by id
}

// New audits the module with this root. An error means that the audit could not be made;
// what the audit found is in Problems.
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
	a := newAudit(tables, exclusions, claims, problems)
	return a, a.addMutations()
}

// addMutations adds the mutations and their results.
func (a *Audit) addMutations() (err error) {
	if a.Mutations, err = Mutations(); err != nil {
		return err
	}
	if a.results, err = Results(); err != nil {
		return err
	}
	if a.survivors, err = survivors(embedded); err != nil {
		return err
	}
	a.checkMutations()
	return nil
}

// checkMutations finds mutations of rows that do not exist or are not claimed, survivors
// without an explanation, and explanations without a survivor.
func (a *Audit) checkMutations() {
	survived := make(map[string]bool)
	a.trials = make(map[string][]Trial)
	for _, t := range a.Trials() {
		a.trials[t.ID] = append(a.trials[t.ID], t)
		if r, done := a.results.Of(t); done && r.Verdict != Noticed {
			survived[t.ID] = true
		}
	}
	for id := range survived {
		if _, explained := a.survivors[id]; !explained {
			a.problem(path.Join("conformance", survivorFile), "no test that claims %s noticed its mutation in time: correct the test, or explain it here", id)
		}
	}
	for id, e := range a.survivors {
		if !survived[id] {
			a.problem(path.Join("conformance", e.Place), "%s has no mutation that survived: delete the line", id)
		}
	}
	for _, m := range a.Mutations {
		for _, id := range m.Rows {
			if !a.known[id] {
				a.problem(m.Place, "%s is in no table", id)
			} else if !a.Claimed(id) {
				a.problem(m.Place, "no test claims %s", id)
			}
		}
	}
}

func newAudit(tables []Table, exclusions []Exclusion, claims []Claim, problems []Problem) *Audit {
	a := &Audit{
		Tables:     tables,
		Exclusions: exclusions,
		Problems:   slices.Clone(problems),
		claims:     make(map[string][]Claim),
		excluded:   make(map[string]Exclusion),
	}
	a.known = make(map[string]bool)
	for _, t := range tables {
		for _, r := range t.Rows {
			a.known[r.ID] = true
		}
	}
	a.addClaims(claims)
	a.addExclusions()
	a.findGaps()
	return a
}

// addClaims adds the claims, but for those that are wrong.
func (a *Audit) addClaims(claims []Claim) {
	for _, c := range claims {
		switch {
		case !a.known[c.ID]:
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
}

// addExclusions adds the exclusions of rows that exist, and reports those that are wrong.
func (a *Audit) addExclusions() {
	for _, e := range a.Exclusions {
		place := path.Join("conformance", e.Place)
		if !a.known[e.ID] {
			a.problem(place, "%s is excluded and is in no table", e.ID)
			continue
		}
		a.excluded[e.ID] = e
		if claims := a.Claims(e.ID); len(claims) > 0 {
			a.problem(place, "%s is excluded and claimed by %s: one of the two is wrong", e.ID, claims[0].Test)
		}
	}
}

// findGaps reports the rows that need a test and have none.
func (a *Audit) findGaps() {
	for _, t := range a.Tables {
		for _, r := range t.Rows {
			if r.Due() && !a.Settled(r.ID) {
				a.problem("", "%s (%s, §%s) %s has no test.\n\tRequirement: %s\n\tTest idea:   %s", r.ID, t.Title, r.Section, r.Level, r.Requirement, r.TestIdea)
			}
		}
	}
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
