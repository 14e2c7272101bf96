package conformance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const source = "package p\n\nfunc f() {\n\tone()\n\ttwo()\n\tone()\n\tthree()\n}\n"

func TestAMutationReplacesWhatStandsThereOnce(t *testing.T) {
	for name, tt := range map[string]struct{ hunk, want, fault string }{
		"a line":              {"-two()\n+2()", strings.Replace(source, "\ttwo()", "2()", 1), ""},
		"a line taken out":    {"-two()", strings.Replace(source, "\ttwo()\n", "", 1), ""},
		"with context":        {" two()\n-\tone()\n+\tuno()", strings.Replace(source, "\ttwo()\n\tone()", "two()\nuno()", 1), ""},
		"a line twice":        {"-one()", "", "occurs more than once"},
		"a line that is gone": {"-four()", "", "are not in p.go"},
		"nothing":             {" two()", "", "replaces nothing"},
		"not a hunk":          {"two()", "", "begins with a blank, - or +"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := parseMutations("m.txt", "# why\n\nA-1 A-2: what\np.go\n"+tt.hunk+"\n")
			var got []byte
			if err == nil {
				got, err = list[0].Apply([]byte(source))
			}
			if tt.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fault) || !strings.Contains(err.Error(), "m.txt:3") {
					t.Errorf("error %v, expected m.txt:3 and %q", err, tt.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("mutated source (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"A-1", "A-2"}, list[0].Rows); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// mutated is an audit of two claimed rows, each with one mutation.
func mutated(t *testing.T) *Audit {
	t.Helper()
	a := newAudit(rows, nil, []Claim{{ID: "A-1", Test: "p.TestOne"}, {ID: "A-2", Test: "p.TestTwo"}, {ID: "A-2", Test: "q.TestTwo", Module: "q"}}, nil)
	list, err := parseMutations("m.txt", "A-1: x\np.go\n-two()\n\nA-2: y\np.go\n-three()\n")
	if err != nil {
		t.Fatal(err)
	}
	a.Mutations, a.results = list, make(Book)
	return a
}

func TestSurvivorsAreExplained(t *testing.T) {
	explained := map[string]Exclusion{"A-2": {ID: "A-2", Reason: "why", Place: "survivors.tsv:2"}}
	for name, tt := range map[string]struct {
		verdict   Verdict
		survivors map[string]Exclusion
		want      string
	}{
		"noticed":                {Noticed, nil, ""},
		"not run":                {"", nil, ""},
		"survived":               {Survived, nil, "no test that claims A-2 noticed its mutation in time"},
		"hung":                   {Hung, nil, "no test that claims A-2 noticed its mutation in time"},
		"survived and explained": {Survived, explained, ""},
		"explained for nothing":  {Noticed, explained, "A-2 has no mutation that survived"},
	} {
		t.Run(name, func(t *testing.T) {
			a := mutated(t)
			for _, trial := range a.Trials() {
				if trial.ID == "A-2" && tt.verdict != "" {
					a.results.Add(Result{ID: "A-2", Key: trial.Key(), Verdict: tt.verdict})
				}
			}
			a.survivors = tt.survivors
			a.checkMutations()
			switch {
			case tt.want == "" && len(a.Problems) > 0:
				t.Errorf("problems %v, expected none", a.Problems)
			case tt.want != "" && (len(a.Problems) != 1 || !strings.Contains(a.Problems[0].Text, tt.want)):
				t.Errorf("problems %v, expected %q", a.Problems, tt.want)
			}
		})
	}
}

func TestAResultCountsForItsMutationAndTestsOnly(t *testing.T) {
	a := mutated(t)
	book, err := ParseResults("id\tkey\tverdict\ttest\nA-1\t0123456789ab\tnoticed\tp.TestOne\n")
	if err != nil {
		t.Fatal(err)
	}
	trial := a.Trials()[0]
	if r, ok := book.Of(trial); ok {
		t.Errorf("%+v counts for a mutation with another key", r)
	}
	want := Result{ID: "A-1", Key: trial.Key(), Verdict: Noticed, Test: "p.TestOne"}
	book.Add(want)
	book.Keep(a.Trials())
	again, err := ParseResults(string(book.Format()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Book{{"A-1", trial.Key()}: want}, again); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	if _, err := ParseResults("id\tkey\tverdict\ttest\nA-1\tk\tperhaps\t\n"); err == nil {
		t.Error(`the verdict "perhaps" is taken`)
	}
}
