package conformance

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rows is a table with one row of each weight.
var rows = []Table{{Name: "a", Title: "Document A", Rows: []Row{
	{ID: "A-1", Section: "1", Level: "MUST", Requirement: "x | y", TestIdea: "idea"},
	{ID: "A-2", Section: "2", Level: "MUST NOT", Requirement: "z", TestIdea: "idea"},
	{ID: "A-3", Section: "3", Level: "MAY", Requirement: "s", TestIdea: "idea"},
	{ID: "A-4", Section: "4", Level: "DEF", Requirement: "d", TestIdea: "idea"},
}}}

func TestTheAuditNamesWhatIsToBeMended(t *testing.T) {
	claimed := []Claim{{ID: "A-1", Test: "p.TestOne"}, {ID: "A-2", Test: "p.TestTwo"}}
	for name, tt := range map[string]struct {
		claims     []Claim
		exclusions []Exclusion
		want       []string
	}{
		"all claimed": {claims: claimed},
		"claimed and excluded apart": {
			claims:     claimed[:1],
			exclusions: []Exclusion{{ID: "A-2", Reason: "why", Place: "excluded.tsv:2"}},
		},
		"unclaimed": {
			claims: claimed[:1],
			want:   []string{"A-2 (Document A, §2) MUST NOT has no test.\n\tRequirement: z\n\tTest idea:   idea"},
		},
		"claimed in another module only": {
			claims: []Claim{claimed[0], {ID: "A-2", Test: "interop.TestPeer", Module: "interop"}},
			want:   []string{"A-2 (Document A, §2) MUST NOT has no test.\n\tRequirement: z\n\tTest idea:   idea"},
		},
		"unknown claim": {
			claims: append([]Claim{{ID: "B-1", Test: "p.TestOne", Place: "p/p_test.go:3"}}, claimed...),
			want:   []string{"p/p_test.go:3: p.TestOne claims B-1, which is in no table"},
		},
		"claimed twice by one test": {
			claims: append([]Claim{{ID: "A-1", Test: "p.TestOne", Place: "p/p_test.go:3"}}, claimed...),
			want:   []string{"p.TestOne claims A-1 twice"},
		},
		"unknown exclusion": {
			claims:     claimed,
			exclusions: []Exclusion{{ID: "B-1", Reason: "why", Place: "excluded.tsv:2"}},
			want:       []string{"conformance/excluded.tsv:2: B-1 is excluded and is in no table"},
		},
		"excluded though claimed": {
			claims:     claimed,
			exclusions: []Exclusion{{ID: "A-1", Reason: "why", Place: "excluded.tsv:2"}},
			want:       []string{"conformance/excluded.tsv:2: A-1 is excluded and claimed by p.TestOne: one of the two is wrong"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range newAudit(rows, tt.exclusions, tt.claims, nil).Problems {
				got = append(got, p.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProblemsOfTheClaimsStayInTheAudit(t *testing.T) {
	stray := Problem{Place: "p/p_test.go:1", Text: "stray"}
	a := newAudit(rows, nil, []Claim{{ID: "A-1", Test: "p.TestOne"}, {ID: "A-2", Test: "p.TestOne"}}, []Problem{stray})
	if len(a.Problems) != 1 || a.Problems[0] != stray {
		t.Errorf("problems = %v, want %v", a.Problems, stray)
	}
}

func TestASHOULDIsToBeClaimedOrExcluded(t *testing.T) {
	for _, level := range []Level{"SHOULD", "SHOULD NOT", "HW-SHOULD"} {
		table := []Table{{Name: "a", Title: "Document A", Rows: []Row{{ID: "A-1", Section: "1", Level: level}}}}
		if a := newAudit(table, nil, nil, nil); len(a.Problems) != 1 || !strings.Contains(a.Problems[0].Text, "A-1") {
			t.Errorf("%s: problems %v, expected A-1", level, a.Problems)
		}
		if a := newAudit(table, nil, []Claim{{ID: "A-1", Test: "p.TestOne"}}, nil); len(a.Problems) != 0 {
			t.Errorf("%s that is claimed: problems %v", level, a.Problems)
		}
	}
}

func TestADefinitionIsToBeClaimedOrExcludedWhereDefinitionsAreAccountedFor(t *testing.T) {
	table := []Table{{Name: "a", Title: "Document A", Rows: []Row{{ID: "A-1", Section: "1", Level: "DEF"}, {ID: "V-99-1", Section: "99", Level: "DEF"}, {ID: "V-99-2", Section: "99", Level: "MAY"}}}}
	if a := newAudit(table, nil, nil, nil); len(a.Problems) != 1 || !strings.Contains(a.Problems[0].Text, "V-99-1") {
		t.Errorf("problems %v, expected V-99-1", a.Problems)
	} else if page := string(a.Pages()["docs/conformance/a.md"]); !strings.Contains(page, "| V-99-1 |") || strings.Contains(page, "| A-1 |") {
		t.Errorf("the page does not list V-99-1 alone:\n%s", page)
	}
	if a := newAudit(table, []Exclusion{{ID: "V-99-1", Reason: "why"}}, nil, nil); len(a.Problems) != 0 {
		t.Errorf("excluded: problems %v", a.Problems)
	}
	for _, prefix := range accountable {
		tables, err := Tables()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(tables, func(t Table) bool {
			return slices.ContainsFunc(t.Rows, func(r Row) bool { return strings.HasPrefix(r.ID, prefix) })
		}) {
			t.Errorf("no row begins with %s", prefix)
		}
	}
}

func TestThePageCountsAndListsEveryBindingRow(t *testing.T) {
	more := []Table{{Name: rows[0].Name, Title: rows[0].Title, Rows: append(slices.Clone(rows[0].Rows),
		Row{ID: "A-5", Section: "5", Level: "HW-MUST", Requirement: "h"}, Row{ID: "A-6", Section: "6", Level: "HW-MUST NOT", Requirement: "n"},
		Row{ID: "A-7", Section: "7", Level: "SHOULD", Requirement: "s"})}}
	pages := newAudit(more,
		[]Exclusion{{ID: "A-2", Reason: "why so"}, {ID: "A-6", Reason: "no such hardware"}, {ID: "A-7", Reason: "why"}},
		[]Claim{
			{ID: "A-1", Test: "p.TestTwo", File: "p/two_test.go"},
			{ID: "A-1", Test: "p.TestOne", File: "p/one_test.go"},
			{ID: "A-1", Test: "interop.TestPeer", Module: "interop", File: "interop/peer_test.go"},
			{ID: "A-4", Test: "p.TestOne", File: "p/one_test.go"},
		}, nil).Pages()
	if len(pages) != 2 {
		t.Errorf("%d pages, expected the index and one for the table", len(pages))
	}
	index, page := string(pages["docs/conformance.md"]), string(pages["docs/conformance/a.md"])
	for _, want := range []string{
		"| [Document A](conformance/a.md) | 7 | 2 | 1 | 1 | 0 | 1 of 2 | 1 | 0 | 1 | 0 of 1 | 1 of 1 | 0 | 0 | 0 |\n",
		"| **all** | 7 | 2 | 1 | 1 | 0 | 1 of 2 | 1 | 0 | 1 | 0 of 1 | 1 of 1 | 0 | 0 | 0 |\n",
	} {
		if !strings.Contains(index, want) {
			t.Errorf("the index lacks %q:\n%s", want, index)
		}
	}
	for _, want := range []string{
		"| A-1 | 1 | MUST | x \\| y | [`interop.TestPeer`](../../interop/peer_test.go) (in a module of its own), [`p.TestOne`](../../p/one_test.go), [`p.TestTwo`](../../p/two_test.go) |  |\n",
		"| A-2 | 2 | MUST NOT | z | [excluded](#exclusions) |  |\n",
		"| A-2 | why so |\n",
		"| A-7 | 7 | SHOULD | s | [excluded](#exclusions) |  |\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "A-3") {
		t.Error("the page lists A-3, which is a MAY")
	}
}
