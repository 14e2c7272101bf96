// The rules, and how a graph is held against them.

package importrule

import (
	"fmt"
	"slices"
	"strings"
)

// layers is the core from top to bottom. A layer may import those that come
// after it.
var layers = []string{
	"nfs/gateway", "nfs/mount", "nfs/nlm", "nfs/folder", "nfs/client", "nfs",
	"rpcrdma", "rpctcp", "oncrpc",
	"cm", "origin", "verbs", "memory", "rdmap", "ddp", "mpa",
}

// socketless are the layers that do without package net: connections are made
// by cm and used by mpa, and what lies between knows streams only.
var socketless = []string{"verbs", "memory", "rdmap", "ddp"}

// outside is what the core may import beyond the standard library.
var outside = []string{"golang.org/x/sys"}

// foreignCode is what runs or loads code that was not compiled from source
// here. RFC 5040 §8.1.1 item 12 and RFC 5041 §8.3.1 forbid to take firmware
// from a peer; the core takes no code from anybody.
var foreignCode = []string{"C", "plugin", "os/exec"}

// A rule decides about one import of one package; to is the name of the
// imported package below the root, or empty when it is not of this module.
// It returns what the rule says when it is broken.
type rule func(pkg string, r reach, to string) (broken string)

// rules are applied to what a package imports outside its tests.
var rules = []rule{downwards, noSockets, lean, noForeignCode, commandsOnTop, captureForCommands}

func isLayer(pkg string) bool { return slices.Contains(layers, pkg) }

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

func downwards(pkg string, _ reach, to string) string {
	if !isLayer(pkg) || to == "" || isHelper(to) {
		return ""
	}
	below := layers[slices.Index(layers, pkg)+1:]
	if slices.Contains(below, to) {
		return ""
	}
	if len(below) == 0 {
		return pkg + " is the lowest layer and imports no package of this module but internal ones"
	}
	return fmt.Sprintf("%s imports only downwards: %s", pkg, strings.Join(below, ", "))
}

func noSockets(pkg string, r reach, _ string) string {
	if slices.Contains(socketless, pkg) && under(r.path, "net") {
		return pkg + " knows nothing of sockets and does not import net"
	}
	return ""
}

func lean(pkg string, r reach, to string) string {
	domain, _, _ := strings.Cut(r.path, "/")
	standard := !strings.Contains(domain, ".")
	if isLayer(pkg) && to == "" && !standard && !under(r.path, outside...) {
		return "the core imports only the standard library and " + strings.Join(outside, ", ")
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

// Check returns what breaks the rules, one line an import: who imports what,
// where, and which rule forbids it.
func (g *Graph) Check() []string {
	var broken []string
	for _, pkg := range g.packages() {
		for _, r := range g.reaches(pkg, isHelper) {
			for _, rule := range rules {
				if text := rule(pkg, r, g.local(r.path)); text != "" {
					broken = append(broken, describe(pkg, r, text))
				}
			}
		}
		// Of the rules, the one about commands holds for tests too.
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

// Missing returns the layers that the graph has no package for, so that a
// renamed layer does not slip out of the rules.
func (g *Graph) Missing() []string {
	return slices.DeleteFunc(slices.Clone(layers), func(l string) bool {
		_, ok := g.code[l]
		return ok
	})
}
