package conformance

import (
	"strings"
	"testing"
	"testing/fstest"
)

const header = "id\tsection\tlevel\trequirement\ttest_idea\n"

func TestRowsAreReadFieldByField(t *testing.T) {
	fsys := fstest.MapFS{"requirements/a.tsv": {Data: []byte(header + "A-1\t2.3\tHW-MUST NOT\tIt is so.\tTry it.\n")}}
	tables, err := readTables(fsys, []document{{"a", "Document A"}})
	if err != nil {
		t.Fatal(err)
	}
	want := Row{ID: "A-1", Section: "2.3", Level: "HW-MUST NOT", Requirement: "It is so.", TestIdea: "Try it."}
	if len(tables) != 1 || tables[0].Name != "a" || tables[0].Title != "Document A" || len(tables[0].Rows) != 1 || tables[0].Rows[0] != want {
		t.Errorf("tables = %+v, want one with %+v", tables, want)
	}
}

func TestMalformedTablesAreRefusedWithTheirPlace(t *testing.T) {
	for name, tt := range map[string]struct{ a, b, want string }{
		"header":      {a: "id\tsection\n", want: "requirements/a.tsv:1: header"},
		"fields":      {a: header + "A-1\t1\tMUST\tonly four\n", want: "requirements/a.tsv:2: 4 fields: expected 5"},
		"empty line":  {a: header + "\n", want: "requirements/a.tsv:2: 1 fields: expected 5"},
		"id":          {a: header + "A 1\t1\tMUST\tr\ti\n", want: `requirements/a.tsv:2: id "A 1"`},
		"level":       {a: header + "A-1\t1\tmust\tr\ti\n", want: `A-1 has level "must"`},
		"requirement": {a: header + "A-1\t1\tMUST\t\ti\n", want: "A-1 has no requirement"},
		"same table":  {a: header + "A-1\t1\tMUST\tr\ti\nA-1\t1\tMAY\tr\ti\n", want: "requirements/a.tsv:3: id A-1 is also at requirements/a.tsv:2"},
		"other table": {a: header + "A-1\t1\tMUST\tr\ti\n", b: "A-1\t1\tMAY\tr\ti\n", want: "requirements/b.tsv:2: id A-1 is also at requirements/a.tsv:2"},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{
				"requirements/a.tsv": {Data: []byte(tt.a)},
				"requirements/b.tsv": {Data: []byte(header + tt.b)},
			}
			if tt.b == "" {
				fsys["requirements/b.tsv"].Data = []byte(header + "B-1\t1\tMAY\tr\ti\n")
			}
			_, err := readTables(fsys, []document{{"a", "A"}, {"b", "B"}})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestAMissingTableIsAnError(t *testing.T) {
	if _, err := readTables(fstest.MapFS{}, []document{{"a", "A"}}); err == nil {
		t.Error("no error, want one that names requirements/a.tsv")
	}
}

func TestEveryTableOfTheFolderIsInTheList(t *testing.T) {
	files, err := embedded.ReadDir("requirements")
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]bool)
	for _, d := range documents {
		listed[d.name+".tsv"] = true
	}
	for _, f := range files {
		if !listed[f.Name()] {
			t.Errorf("requirements/%s is not in the list of table.go", f.Name())
		}
	}
}

func TestMustAndMustNotAreMandatoryForHardwareToo(t *testing.T) {
	for level, want := range map[Level]bool{
		"MUST": true, "MUST NOT": true, "HW-MUST": true, "HW-MUST NOT": true,
		"SHOULD": false, "SHOULD NOT": false, "MAY": false, "DEF": false, "HW-DEF": false, "": false,
	} {
		if got := level.Mandatory(); got != want {
			t.Errorf("Level(%q).Mandatory() = %t, want %t", level, got, want)
		}
	}
}

func TestMalformedExclusionsAreRefusedWithTheirPlace(t *testing.T) {
	for name, tt := range map[string]struct{ rows, want string }{
		"no reason": {"A-1\t \n", "excluded.tsv:2: A-1 is listed without a reason"},
		"twice":     {"A-1\twhy\nA-1\tagain\n", "excluded.tsv:3: A-1 is listed twice"},
		"fields":    {"A-1\n", "excluded.tsv:2: 1 fields: expected 2"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readExclusions(fstest.MapFS{"excluded.tsv": {Data: []byte("id\treason\n" + tt.rows)}})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}
