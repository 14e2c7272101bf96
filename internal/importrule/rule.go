// The rules, and how a graph is checked against them.

package importrule

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// layers is the core from top to bottom. A layer may import those that come
// after it, and internal packages.
var layers = []string{
	"nfs/gateway", "nfs/mount", "nfs/nlm", "nfs/folder", "nfs/client", "nfs/binding", "nfs",
	"rpcrdma", "rpctcp", "rpcrdma/payload", "rpcrdma/wire", "oncrpc",
	"cm", "origin", "verbs", "memory", "rdmap", "ddp", "mpa",
}

// parts are what a layer is put together from, by the layer. A part knows neither the
// layer nor the other parts.
var parts = map[string][]string{
	"mpa": {"mpa/internal/fpdu", "mpa/internal/socket", "mpa/internal/turns"},
}

// beside has the directories that are not layers, with what of this module each may
// import outside its tests. A directory that ends in /... stands for what is below it, too.
var beside = map[string][]string{
	".":            {}, // documentation and tests
	"capture":      {},
	"cmd/weft/...": {everything},

	"conformance":        {},
	"conformance/gen":    {"conformance"},
	"conformance/mutate": {"conformance"},

	"internal/chart":           {},
	"internal/crc32c":          {},
	"internal/fairness":        {"internal/panics", "origin"},
	"internal/importrule":      {},
	"internal/listening":       {"ddp"},
	"internal/memcopy":         {},
	"internal/nettest":         {},
	"internal/pages":           {"internal/memcopy"},
	"internal/pages/pagestest": {},
	"internal/panics":          {},
	"internal/polled":          {"internal/panics"},
	"internal/quote":           {},
	"internal/records":         {"ddp", "internal/pages"},
	"internal/rpcmodel":        {}, // tests
	"internal/rpctest":         {"cm", "internal/nettest", "nfs/binding", "oncrpc", "rpcrdma", "rpctcp", "verbs"},
	"internal/rping":           {"memory", "verbs"},
	"internal/script":          {},
	"internal/stats":           {},
	"internal/tlsid":           {"origin"},
	"internal/verbsmodel":      {}, // tests
	"internal/wiretest":        {"cm", "internal/nettest", "internal/tlsid", "iwarptest", "memory", "mpa", "verbs"},

	"mpa/internal/fpdu/fpdutest": {},
	"nfs/internal/golden":        {"nfs", "oncrpc"},
	"rpcrdma/internal/exchange":  {"oncrpc", "rpcrdma/payload", "rpcrdma/wire"},
	"rpcrdma/internal/worked":    {"rpcrdma/wire"},

	// The peer for tests shares no code with what it tests.
	"iwarptest": {},
}

// everything stands for all packages in the lists of beside.
const everything = "..."

// socketless are the layers, and parts of them, that do without package net: connections
// are made by cm and used by mpa, and what lies between knows streams only.
var socketless = []string{"verbs", "memory", "rdmap", "ddp", "mpa/internal/fpdu", "mpa/internal/socket", "mpa/internal/turns"}

// llpless are the layers that run over any LLP: what assembles a stream, which is cm,
// is what knows that it is MPA.
var llpless = []string{"verbs", "memory", "rdmap", "ddp"}

// withoutRDMA are the layers that a server or a client of RPC over TCP is made
// of. Of all layers they import only each other, so that what serves TCP alone
// links neither rpcrdma nor verbs. Upper-layer bindings are among them: they say
// what RDMA may move, and move nothing.
var withoutRDMA = []string{
	"nfs/mount", "nfs/nlm", "nfs/folder", "nfs/client", "nfs/binding", "nfs",
	"rpctcp", "rpcrdma/payload", "rpcrdma/wire", "oncrpc", "origin",
}

// pure are the layers that only compute: they do no I/O and know neither time
// nor goroutines.
var pure = []string{"rpcrdma/payload", "rpcrdma/wire"}

// impure is what those do without.
var impure = []string{"net", "os", "syscall", "time", "context", "sync", "golang.org/x/sys"}

// outside is what packages may import beyond the standard library, except those that
// may import libraries.
var outside = []string{"golang.org/x/sys"}

// withLibraries are the directories that may import any library, with all below them.
var withLibraries = []string{"cmd", "capture"}

// testHelpers are imported by tests only, and by each other.
var testHelpers = []string{
	"iwarptest", "internal/nettest", "internal/pages/pagestest", "internal/records", "internal/rpctest", "internal/wiretest",
	"mpa/internal/fpdu/fpdutest", "nfs/internal/golden", "rpcrdma/internal/exchange", "rpcrdma/internal/worked",
}

// testLibraries are what test helpers that nobody else can import may import, as tests do.
var testLibraries = []string{"github.com/google/go-cmp"}

// foreignCode is what runs or loads code that was not compiled from source
// here. RFC 5040 §8.1.1 item 12 and RFC 5041 §8.3.1 forbid to take firmware
// from a peer; the core takes no code from anybody.
var foreignCode = []string{"C", "plugin", "os/exec"}

// A rule decides about one import of one package; to is the name of the
// imported package below the root, or empty when it is not of this module.
// It returns what the rule says if the import breaks it.
type rule func(pkg string, r reach, to string) (broken string)

// rules apply to what a package imports outside its tests. The first that an import
// breaks is reported.
var rules = []rule{commandsOnTop, captureForCommands, helpersForTests, downwards, listed, noSockets, anyLLP, noRDMA, onlyComputing, lean, noForeignCode}

func isLayer(pkg string) bool { return slices.Contains(layers, pkg) || isPart(pkg) }

// isPart reports whether pkg is a part of a layer.
func isPart(pkg string) bool {
	for _, of := range parts {
		if slices.Contains(of, pkg) {
			return true
		}
	}
	return false
}

// isHelper reports whether pkg is looked through: it belongs to no layer and
// is no package with a place of its own.
func isHelper(pkg string) bool { return strings.HasPrefix(pkg, "internal/") }

// under reports whether an import path or package is one of the roots or lies
// below it.
func under(path string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return path == root || strings.HasPrefix(path, root+"/")
	})
}

// besideOf returns what pkg, which is not a layer, may import; ok is false if no rule
// names it.
func besideOf(pkg string) (may []string, ok bool) {
	if may, ok := beside[pkg]; ok {
		return may, true
	}
	for folder, may := range beside {
		if root, ok := strings.CutSuffix(folder, "/..."); ok && under(pkg, root) {
			return may, true
		}
	}
	return nil, false
}

func downwards(pkg string, _ reach, to string) string {
	if !isLayer(pkg) || to == "" || isHelper(to) {
		return ""
	}
	if isPart(pkg) {
		return pkg + " is a part of a layer and imports no package of this module but internal ones"
	}
	if slices.Contains(parts[pkg], to) {
		return ""
	}
	below := layers[slices.Index(layers, pkg)+1:]
	if slices.Contains(below, to) {
		return ""
	}
	if len(below) == 0 {
		return pkg + " is the lowest layer and imports no package of this module but its parts and internal ones"
	}
	return fmt.Sprintf("%s imports only downwards: %s", pkg, strings.Join(below, ", "))
}

// listed applies to direct imports of directories that are not layers.
func listed(pkg string, r reach, to string) string {
	may, ok := besideOf(pkg)
	if isLayer(pkg) || !ok || to == "" || len(r.via) > 0 || slices.Contains(may, everything) || slices.Contains(may, to) {
		return ""
	}
	if len(may) == 0 {
		return pkg + " imports no package of this module"
	}
	return fmt.Sprintf("of this module %s imports only %s", pkg, strings.Join(may, ", "))
}

func noSockets(pkg string, r reach, _ string) string {
	if slices.Contains(socketless, pkg) && under(r.path, "net") {
		return pkg + " knows nothing of sockets and does not import net"
	}
	return ""
}

func anyLLP(pkg string, _ reach, to string) string {
	if slices.Contains(llpless, pkg) && to == "mpa" {
		return pkg + " runs over any LLP and does not import one"
	}
	return ""
}

func noRDMA(pkg string, _ reach, to string) string {
	if slices.Contains(withoutRDMA, pkg) && isLayer(to) && !slices.Contains(withoutRDMA, to) {
		return pkg + " serves RPC over TCP, too, and links nothing of RDMA"
	}
	return ""
}

func onlyComputing(pkg string, r reach, _ string) string {
	if slices.Contains(pure, pkg) && len(r.via) == 0 && under(r.path, impure...) {
		return pkg + " is pure and does not import " + strings.Join(impure, ", ")
	}
	return ""
}

func lean(pkg string, r reach, to string) string {
	domain, _, _ := strings.Cut(r.path, "/")
	standard := !strings.Contains(domain, ".")
	if slices.Contains(testHelpers, pkg) && strings.Contains(pkg, "internal/") && under(r.path, testLibraries...) {
		return ""
	}
	if !under(pkg, withLibraries...) && to == "" && !standard && !under(r.path, outside...) {
		return fmt.Sprintf("outside of %s only the standard library and %s are imported", strings.Join(withLibraries, " and "), strings.Join(outside, ", "))
	}
	return ""
}

func noForeignCode(pkg string, r reach, _ string) string {
	if isLayer(pkg) && slices.Contains(foreignCode, r.path) {
		return "the core runs no code that it was not compiled from: not " + strings.Join(foreignCode, ", ")
	}
	return ""
}

func commandsOnTop(pkg string, _ reach, to string) string {
	if under(to, "cmd") && !under(pkg, "cmd") {
		return "nothing imports a command"
	}
	return ""
}

func captureForCommands(pkg string, _ reach, to string) string {
	if under(to, "capture") && !under(pkg, "cmd", "capture") {
		return "capture is imported by commands and tests only"
	}
	return ""
}

func helpersForTests(pkg string, _ reach, to string) string {
	if slices.Contains(testHelpers, to) && !slices.Contains(testHelpers, pkg) {
		return to + " is imported by tests only"
	}
	return ""
}

// Check returns what breaks the rules, one line an import: who imports what,
// where, and which rule forbids it. A directory that no rule names has a line, too.
func (g *Graph) Check() []string {
	var broken []string
	for _, pkg := range g.packages() {
		if _, ok := besideOf(pkg); !ok && !isLayer(pkg) {
			broken = append(broken, pkg+" has no import rule: add it to layers or to beside in internal/importrule/rule.go")
		}
		for _, r := range g.reaches(pkg, isHelper) {
			for _, rule := range rules {
				if text := rule(pkg, r, g.local(r.path)); text != "" {
					broken = append(broken, describe(pkg, r, text))
					break
				}
			}
		}
		// Of the rules, the one about commands applies to tests, too.
		for _, e := range g.tests[pkg] {
			r := reach{path: e.path, file: e.file}
			if text := commandsOnTop(pkg, r, g.local(e.path)); text != "" {
				broken = append(broken, describe(pkg, r, text))
			}
		}
	}
	return broken
}

func describe(pkg string, r reach, text string) string {
	way := pkg
	for _, v := range r.via {
		way += ", through " + v + ","
	}
	return fmt.Sprintf("%s: %s imports %q: %s", r.file, way, r.path, text)
}

// Missing returns the directories of the rules that the graph has no package for, so that
// a package that was renamed does not escape its rule.
func (g *Graph) Missing() []string {
	var missing []string
	for _, l := range layers {
		for _, folder := range append([]string{l}, parts[l]...) {
			if _, ok := g.code[folder]; !ok {
				missing = append(missing, folder)
			}
		}
	}
	packages := g.packages()
	for _, folder := range slices.Sorted(maps.Keys(beside)) {
		if !slices.Contains(packages, strings.TrimSuffix(folder, "/...")) {
			missing = append(missing, folder)
		}
	}
	return missing
}
