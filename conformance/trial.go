// Trials: mutations with the claiming tests that should notice them.

package conformance

import "fmt"

// A Trial is a mutation, one of its rows, and the tests that claim that row.
type Trial struct {
	ID       string
	Mutation *Mutation
	Tests    []string // of this module, as Claim.Test; sorted
}

// Key identifies the trial's mutation and tests.
func (t *Trial) Key() string { return t.Mutation.Key(t.Tests) }

// Trials returns the trials of all mutations, in order. Rows that no test of this module
// claims have none.
func (a *Audit) Trials() (all []Trial) {
	for i := range a.Mutations {
		m := &a.Mutations[i]
		for _, id := range m.Rows {
			t := Trial{ID: id, Mutation: m}
			for _, c := range a.claims[id] {
				if c.Module == "" {
					t.Tests = append(t.Tests, c.Test)
				}
			}
			if t.Tests != nil {
				all = append(all, t)
			}
		}
	}
	return all
}

// Of returns the result of a trial.
func (b Book) Of(t Trial) (Result, bool) {
	r, ok := b[[2]string{t.ID, t.Key()}]
	return r, ok
}

// Keep deletes the results of all other trials, whose mutation or tests have changed.
func (b Book) Keep(trials []Trial) {
	wanted := make(map[[2]string]bool)
	for _, t := range trials {
		wanted[[2]string{t.ID, t.Key()}] = true
	}
	for k := range b {
		if !wanted[k] {
			delete(b, k)
		}
	}
}

// Survivors returns the trials that no test noticed, each with its explanation.
func (a *Audit) Survivors(book Book) (list []Problem) {
	for _, t := range a.Trials() {
		r, done := book.Of(t)
		if !done || r.Verdict == Noticed {
			continue
		}
		reason := "not explained yet"
		if e, ok := a.survivors[t.ID]; ok {
			reason = e.Reason
		}
		list = append(list, Problem{t.Mutation.Place, fmt.Sprintf("%s %s: %s", t.ID, r.Verdict, reason)})
	}
	return list
}
