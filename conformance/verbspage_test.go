// The test that holds docs/verbs.md to the code: what it names is there, and
// what the specification has is named.

package conformance

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// verbsPage is where the page lies below the module's root.
const verbsPage = "docs/verbs.md"

// allVerbs are the verbs of the specification, by section.
var allVerbs = map[string]string{
	"9.2.1.1": "Open RNIC", "9.2.1.2": "Query RNIC", "9.2.1.3": "Close RNIC",
	"9.2.2.1": "Allocate PD", "9.2.2.2": "Deallocate PD",
	"9.2.3.1": "Create CQ", "9.2.3.2": "Query CQ", "9.2.3.3": "Modify CQ", "9.2.3.4": "Destroy CQ",
	"9.2.4.1": "Create S-RQ", "9.2.4.2": "Query S-RQ", "9.2.4.3": "Modify S-RQ", "9.2.4.4": "Destroy S-RQ",
	"9.2.5.1": "Create QP", "9.2.5.2": "Query QP", "9.2.5.3": "Modify QP", "9.2.5.4": "Destroy QP",
	"9.2.6.1": "Allocate Non-Shared Memory Region STag", "9.2.6.2": "Register Non-Shared Memory Region", "9.2.6.3": "Query Memory Region",
	"9.2.6.4": "Deallocate STag", "9.2.6.5": "Reregister Non-Shared Memory Region", "9.2.6.6": "Register Shared Memory Region",
	"9.2.6.7": "Allocate Memory Window", "9.2.6.8": "Query Memory Window",
	"9.3.1.1": "PostSQ", "9.3.1.2": "PostRQ", "9.3.2.1": "Poll for Completion", "9.3.2.2": "Request Completion Notification",
	"9.4.1": "Set Completion Event Handler", "9.4.2": "Set Asynchronous Event Handler",
}

// A pageRow is a row of a table of a Markdown page, by the titles of its
// columns, and the heading it stands under.
type pageRow struct {
	heading string
	cells   map[string]string
}

// pageRows reads the tables of a page.
func pageRows(page string) (rows []pageRow) {
	heading, titles := "", []string(nil)
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if h, ok := strings.CutPrefix(line, "#"); ok {
			heading = strings.TrimLeft(h, "# ")
		}
		if !strings.HasPrefix(line, "|") {
			titles = nil
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case titles == nil:
			titles = cells
		case strings.HasPrefix(cells[0], "---"):
		default:
			row := pageRow{heading, map[string]string{}}
			for i, c := range cells[:min(len(cells), len(titles))] {
				row.cells[titles[i]] = c
			}
			rows = append(rows, row)
		}
	}
	return rows
}

var (
	codeSpan   = regexp.MustCompile("`([^`]+)`")
	testLink   = regexp.MustCompile("\\[`((?:Test|Example|Fuzz)\\w*)`\\]\\(([^)]+)\\)")
	resultName = regexp.MustCompile(`^Err[A-Z]`)
	goName     = regexp.MustCompile(`^(?:(verbs|memory|rdmap|ddp|mpa|cm)\.)?([A-Z]\w*(?:\.[A-Z]\w*)?)$`)
)

// named returns the Go names that stand in code spans of text, package first;
// names of tests are not among them.
func named(text string) (names []string) {
	for _, m := range codeSpan.FindAllStringSubmatch(testLink.ReplaceAllString(text, ""), -1) {
		if n := goName.FindStringSubmatch(m[1]); n != nil {
			pkg := n[1]
			if pkg == "" {
				pkg = "verbs"
			}
			names = append(names, pkg+"."+n[2])
		}
	}
	return names
}

// A goPackage is what a package exports: Name, Type.Method, Type.Field. Of a
// constant the value is the name of its type.
type goPackage map[string]string

// exports reads the package in dir.
func exports(t *testing.T, dir string) goPackage {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	p := goPackage{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = typeName(d.Recv.List[0].Type) + "." + name
				}
				p[name] = ""
			case *ast.GenDecl:
				p.declared(d)
			}
		}
	}
	return p
}

func (p goPackage) declared(d *ast.GenDecl) {
	kind := "" // type of the constants so far: iota repeats it
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			p[spec.Name.Name] = ""
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range s.Fields.List {
					for _, n := range f.Names {
						p[spec.Name.Name+"."+n.Name] = ""
					}
				}
			}
		case *ast.ValueSpec:
			if spec.Type != nil {
				kind = typeName(spec.Type)
			} else if len(spec.Values) > 0 {
				kind = ""
			}
			for _, n := range spec.Names {
				p[n.Name] = kind
			}
		}
	}
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

func readVerbsPage(t *testing.T) (page, root string) {
	t.Helper()
	root, err := Root(".")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(verbsPage)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text), root
}

// Every verb of the specification, every work request, status, result, event
// and state has a row that gives its Go name and a test or an example of it.
//
// Claims: V-9-1
func TestTheVerbsPageLeavesNothingOut(t *testing.T) {
	page, root := readVerbsPage(t)
	verbs := exports(t, filepath.Join(root, "verbs"))
	listed := map[string]bool{} // names that have a row, and whether it shows a test
	found := map[string]bool{}
	for _, row := range pageRows(page) {
		shown := testLink.MatchString(row.cells["shown by"])
		for _, name := range named(row.cells["Weft"]) {
			listed[name] = listed[name] || shown
		}
		section := row.cells["§"]
		if verb := allVerbs[section]; row.heading == "Verbs" && verb != "" {
			if !strings.HasPrefix(row.cells["verb"], verb) || len(named(row.cells["Weft"])) == 0 || !shown || row.cells["libibverbs"] == "" {
				t.Errorf("§%s %s: the row is %v, expected its Go name, its libibverbs name and a test", section, verb, row.cells)
			}
			found[section] = true
		}
	}
	for section, verb := range allVerbs {
		if !found[section] {
			t.Errorf("§%s %s has no row", section, verb)
		}
	}
	counted := map[string]int{}
	for name, kind := range verbs {
		switch {
		case !ast.IsExported(name):
			continue
		case resultName.MatchString(name):
			kind = "result"
		case !slices.Contains([]string{"Status", "EventID", "Op", "State", "Notify", "Flags", "Mode"}, kind):
			continue
		}
		counted[kind]++
		shown, ok := listed["verbs."+name]
		if !ok {
			t.Errorf("%s (%s) has no row", name, kind)
		}
		// No row of another kind has a column for tests, and one result cannot be had.
		if !shown && slices.Contains([]string{"Status", "EventID", "Op", "result"}, kind) && name != "ErrBlockList" {
			t.Errorf("%s (%s) has no test or example", name, kind)
		}
	}
	for kind, least := range map[string]int{"Status": 25, "EventID": 42, "Op": 11, "State": 5, "result": 42} {
		if counted[kind] < least {
			t.Errorf("%d names of kind %s were found in the package, expected at least %d", counted[kind], kind, least)
		}
	}
}

// What the page names is there: Go names, and tests in the files it links to.
func TestTheVerbsPageNamesWhatIsThere(t *testing.T) {
	page, root := readVerbsPage(t)
	packages := map[string]goPackage{}
	for _, name := range named(page) {
		pkg, rest, _ := strings.Cut(name, ".")
		if packages[pkg] == nil {
			packages[pkg] = exports(t, filepath.Join(root, pkg))
		}
		if _, ok := packages[pkg][rest]; !ok {
			t.Errorf("%s is not in package %s", rest, pkg)
		}
	}
	tests := map[string]string{}
	for _, m := range testLink.FindAllStringSubmatch(page, -1) {
		name, file := m[1], path.Join(path.Dir(verbsPage), m[2])
		if tests[file] == "" {
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
			if err != nil {
				t.Error(err)
				continue
			}
			tests[file] = string(text)
		}
		if !strings.Contains(tests[file], "\nfunc "+name+"(") {
			t.Errorf("%s is not in %s", name, file)
		}
	}
	if i := strings.Index(page, "{}"); i >= 0 {
		t.Errorf("something is left open: %s", page[max(0, i-100):i+2])
	}
}
