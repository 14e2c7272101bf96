package importrule

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// platforms are those that .ci/run compiles for.
var platforms = []string{"linux/amd64", "darwin/arm64", "windows/amd64", "linux/arm64", "linux/386", "linux/s390x"}

const weft = "github.com/weft-rdma/weft"

// An importer is a program in a module of its own that imports Weft.
type importer struct {
	t   *testing.T
	dir string
}

func newImporter(t *testing.T, packages ...string) *importer {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum")) // so that nothing is asked of the network
	if err != nil {
		t.Fatal(err)
	}
	program := "package main\n\n"
	for _, p := range packages {
		program += "import _ \"" + weft + "/" + p + "\"\n"
	}
	i := &importer{t, t.TempDir()}
	for name, text := range map[string]string{
		"go.mod":  "module example.test/program\n\ngo 1.26\n\nrequire " + weft + " v0.0.0\n\nreplace " + weft + " => " + root + "\n",
		"go.sum":  string(sums),
		"main.go": program + "\nfunc main() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(i.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

// modules returns the modules whose packages the program is built from on a platform,
// besides Weft and itself. go.mod gets the requirements that it lacks.
func (i *importer) modules(platform string) []string {
	i.t.Helper()
	system, processor, _ := strings.Cut(platform, "/")
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	list.Dir = i.dir
	list.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	list.Stderr = i.t.Output()
	out, err := list.Output()
	if err != nil {
		i.t.Fatalf("go list: %v", err)
	}
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	return slices.DeleteFunc(slices.Compact(modules), func(m string) bool { return m == weft || m == "example.test/program" })
}

// requirements returns the modules that the program's go.mod requires, besides Weft.
func (i *importer) requirements() (modules []string) {
	i.t.Helper()
	list := exec.Command("go", "mod", "edit", "-json")
	list.Dir = i.dir
	out, err := list.Output()
	if err != nil {
		i.t.Fatalf("go mod edit: %v", err)
	}
	var file struct{ Require []struct{ Path string } }
	if err := json.Unmarshal(out, &file); err != nil {
		i.t.Fatal(err)
	}
	for _, r := range file.Require {
		if r.Path != weft {
			modules = append(modules, r.Path)
		}
	}
	return modules
}

// A program pays for what it uses: whatever it imports of the core, it is built from
// the standard library and golang.org/x/sys, and its go.mod names nothing else.
func TestImportersOfTheCoreInheritOnlyXSys(t *testing.T) {
	for name, packages := range map[string][]string{
		"verbs": {"verbs"}, "cm": {"cm"}, "rpcrdma": {"rpcrdma"}, "nfs/client": {"nfs/client"}, "all": append(slices.Clone(layers), "iwarptest"),
	} {
		t.Run(name, func(t *testing.T) {
			i := newImporter(t, packages...)
			for _, platform := range platforms {
				if beyond := beyondOutside(i.modules(platform)); len(beyond) > 0 {
					t.Errorf("on %s it is built from %v, too", platform, beyond)
				}
			}
			if beyond := beyondOutside(i.requirements()); len(beyond) > 0 {
				t.Errorf("go.mod names %v, too", beyond)
			}
		})
	}
}

func beyondOutside(modules []string) []string {
	return slices.DeleteFunc(modules, func(m string) bool { return slices.Contains(outside, m) })
}

// The test notices a library.
func TestImportersOfCaptureInheritItsLibrary(t *testing.T) {
	i := newImporter(t, "capture")
	if m := i.modules("linux/amd64"); !slices.Contains(m, "github.com/gopacket/gopacket") {
		t.Errorf("modules %v", m)
	}
}
