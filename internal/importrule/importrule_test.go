package importrule

import (
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestPackagesImportOnlyDownwards holds this module to the rules. The claims
// are about firmware from peers: what the core never loads, it never loads
// from a peer.
//
// Claims: R-8.1.1-13 DDP-8.3.1-7 V-10.5-1
func TestPackagesImportOnlyDownwards(t *testing.T) {
	g, err := Read(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range g.Missing() {
		t.Errorf("there is no package %s, for which rule.go has a rule", folder)
	}
	for _, line := range g.Check() {
		t.Error(line)
	}
}

// A program that serves files over TCP has no code of RDMA in it: not that of a
// connection, and not that of the layers below.
func TestAServerOverTCPLinksNoRDMA(t *testing.T) {
	g, err := Read(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range []string{"rpctcp", "nfs/folder", "nfs/mount", "nfs/nlm", "nfs/client", "nfs/binding"} {
		links := g.Links(pkg)
		if !slices.Contains(links, "oncrpc") {
			t.Errorf("%s links %q, want oncrpc among them", pkg, links)
		}
		for _, rdma := range []string{"rpcrdma", "cm", "verbs", "memory", "rdmap", "ddp", "mpa"} {
			if slices.Contains(links, rdma) {
				t.Errorf("%s links %s", pkg, rdma)
			}
		}
	}
}

// module makes a module of files whose imports are given, by file name.
func module(imports map[string][]string) fstest.MapFS {
	fsys := fstest.MapFS{"go.mod": {Data: []byte("module example.test/m\n\ngo 1.26\n")}}
	for name, list := range imports {
		src := "package p\n"
		for _, path := range list {
			src += fmt.Sprintf("import _ %q\n", path)
		}
		fsys[name] = &fstest.MapFile{Data: []byte(src)}
	}
	return fsys
}

func TestTheRulesNameTheImportThatBreaksThem(t *testing.T) {
	const m = "example.test/m/"
	for name, tt := range map[string]struct {
		imports map[string][]string
		want    []string
	}{
		"downwards, standard library and x/sys": {
			imports: map[string][]string{
				"cm/a.go":       {"net", m + "verbs", m + "mpa"},
				"verbs/a.go":    {"sync", m + "memory", m + "rdmap"},
				"memory/a.go":   {m + "ddp"},
				"rdmap/a.go":    {m + "ddp"},
				"ddp/a.go":      {"errors"},
				"mpa/a.go":      {"net", "golang.org/x/sys/unix"},
				"cmd/weft/a.go": {m + "cm", m + "capture", "example.org/cli", m + "cmd/weft/internal"},
			},
		},
		"upwards": {
			imports: map[string][]string{"mpa/a.go": {m + "ddp"}},
			want:    []string{`mpa/a.go:2: mpa imports "example.test/m/ddp": mpa is the lowest layer and imports no package of this module but its parts and internal ones`},
		},
		"a part of a layer": {
			imports: map[string][]string{"mpa/a.go": {m + "mpa/internal/turns"}, "mpa/internal/turns/a.go": {"sync", m + "internal/h"}},
		},
		"a part of a layer that knows another, or the layer": {
			imports: map[string][]string{"mpa/internal/turns/a.go": {m + "mpa/internal/socket", m + "mpa", "net"}},
			want: []string{
				`mpa/internal/turns/a.go:2: mpa/internal/turns imports "example.test/m/mpa/internal/socket": mpa/internal/turns is a part of a layer and imports no package of this module but internal ones`,
				`mpa/internal/turns/a.go:3: mpa/internal/turns imports "example.test/m/mpa": mpa/internal/turns is a part of a layer and imports no package of this module but internal ones`,
				`mpa/internal/turns/a.go:4: mpa/internal/turns imports "net": mpa/internal/turns knows nothing of sockets and does not import net`,
			},
		},
		"upwards, in a file for one platform": {
			imports: map[string][]string{"rdmap/a_plan9.go": {m + "verbs"}},
			want:    []string{`rdmap/a_plan9.go:2: rdmap imports "example.test/m/verbs": rdmap imports only downwards: ddp, mpa`},
		},
		"through a helper": {
			imports: map[string][]string{"ddp/a.go": {m + "internal/quote"}, "internal/quote/h.go": {"os", m + "rdmap"}},
			want: []string{
				`internal/quote/h.go:3: ddp, through internal/quote, imports "example.test/m/rdmap": ddp imports only downwards: mpa`,
				`internal/quote/h.go:3: internal/quote imports "example.test/m/rdmap": internal/quote imports no package of this module`,
			},
		},
		"aside": {
			imports: map[string][]string{"ddp/a.go": {m + "conformance"}, "conformance/a.go": {m + "mpa"}, "conformance/gen/a.go": {m + "mpa"}},
			want: []string{
				`conformance/a.go:2: conformance imports "example.test/m/mpa": conformance imports no package of this module`,
				`conformance/gen/a.go:2: conformance/gen imports "example.test/m/mpa": of this module conformance/gen imports only conformance`,
				`ddp/a.go:2: ddp imports "example.test/m/conformance": ddp imports only downwards: mpa`,
			},
		},
		"a directory without a rule": {
			imports: map[string][]string{"new/a.go": nil, "cmd/other/a_test.go": nil},
			want: []string{
				"cmd/other has no import rule: add it to layers or to beside in internal/importrule/rule.go",
				"new has no import rule: add it to layers or to beside in internal/importrule/rule.go",
			},
		},
		"helpers of tests": {
			imports: map[string][]string{"cm/a.go": {m + "iwarptest"}, "cm/a_test.go": {m + "iwarptest"}, "internal/wiretest/a.go": {m + "iwarptest"}},
			want:    []string{`cm/a.go:2: cm imports "example.test/m/iwarptest": iwarptest is imported by tests only`},
		},
		"sockets": {
			imports: map[string][]string{"verbs/a.go": {"net/netip"}},
			want:    []string{`verbs/a.go:2: verbs imports "net/netip": verbs knows nothing of sockets and does not import net`},
		},
		"an LLP": {
			imports: map[string][]string{"ddp/a.go": {m + "mpa"}, "rdmap/a_test.go": {m + "mpa"}, "cm/a.go": {m + "mpa"}},
			want:    []string{`ddp/a.go:2: ddp imports "example.test/m/mpa": ddp runs over any LLP and does not import one`},
		},
		"RDMA in what serves TCP": {
			imports: map[string][]string{"nfs/binding/a.go": {m + "rpcrdma/payload", m + "rpcrdma"}, "rpctcp/a.go": {m + "oncrpc"}},
			want:    []string{`nfs/binding/a.go:3: nfs/binding imports "example.test/m/rpcrdma": nfs/binding serves RPC over TCP, too, and links nothing of RDMA`},
		},
		"time in what is pure": {
			imports: map[string][]string{"rpcrdma/wire/a.go": {"time", "encoding/binary"}},
			want:    []string{`rpcrdma/wire/a.go:2: rpcrdma/wire imports "time": rpcrdma/wire is pure and does not import net, os, syscall, time, context, sync, golang.org/x/sys`},
		},
		"a library in the core": {
			imports: map[string][]string{"cm/a.go": {"example.org/log", "golang.org/x/system"}},
			want: []string{
				`cm/a.go:2: cm imports "example.org/log": outside of cmd and capture only the standard library and golang.org/x/sys are imported`,
				`cm/a.go:3: cm imports "golang.org/x/system": outside of cmd and capture only the standard library and golang.org/x/sys are imported`,
			},
		},
		"a library through a helper": {
			imports: map[string][]string{"cm/a.go": {m + "internal/quote"}, "internal/quote/h.go": {"example.org/log"}},
			want: []string{
				`internal/quote/h.go:2: cm, through internal/quote, imports "example.org/log": outside of cmd and capture only the standard library and golang.org/x/sys are imported`,
				`internal/quote/h.go:2: internal/quote imports "example.org/log": outside of cmd and capture only the standard library and golang.org/x/sys are imported`,
			},
		},
		"foreign code": {
			imports: map[string][]string{"mpa/a.go": {"plugin"}, "cmd/weft/a.go": {"os/exec"}},
			want:    []string{`mpa/a.go:2: mpa imports "plugin": the core runs no code that it was not compiled from: not C, plugin, os/exec`},
		},
		"a command": {
			imports: map[string][]string{"conformance/a.go": {m + "cmd/weft"}, "cm/a_test.go": {m + "cmd/weft"}},
			want: []string{
				`cm/a_test.go:2: cm imports "example.test/m/cmd/weft": nothing imports a command`,
				`conformance/a.go:2: conformance imports "example.test/m/cmd/weft": nothing imports a command`,
			},
		},
		"capture": {
			imports: map[string][]string{"conformance/a.go": {m + "capture"}, "mpa/a_test.go": {m + "capture"}},
			want:    []string{`conformance/a.go:2: conformance imports "example.test/m/capture": capture is imported by commands and tests only`},
		},
		"what the go command passes over": {
			imports: map[string][]string{
				"mpa/testdata/a.go": {m + "cmd/weft"}, "mpa/_a.go": {m + "verbs"}, ".mpa/a.go": {m + "cmd/weft"}, "mpa/vendor/a.go": {m + "cmd/weft"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := Read(module(tt.imports))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, g.Check()); diff != "" {
				t.Errorf("broken rules (-want +got):\n%s", diff)
			}
		})
	}
}

func TestModulesOfTheirOwnAreLeftOut(t *testing.T) {
	fsys := module(map[string][]string{"mpa/a.go": nil, "interop/a.go": {"example.test/m/cmd/weft"}})
	fsys["interop/go.mod"] = &fstest.MapFile{Data: []byte("module example.test/m/interop\n")}
	g, err := Read(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if broken := g.Check(); broken != nil {
		t.Errorf("broken rules: %q, want none", broken)
	}
}

func TestAFolderThatIsGoneIsMissed(t *testing.T) {
	files := map[string][]string{"mpa/a_test.go": nil}
	for _, folder := range append(slices.Collect(maps.Keys(beside)), layers...) {
		if folder != "rdmap" && folder != "mpa" && folder != "iwarptest" {
			files[path.Join(strings.TrimSuffix(folder, "/..."), "a.go")] = nil
		}
	}
	g, err := Read(module(files))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"rdmap", "mpa", "mpa/internal/fpdu", "mpa/internal/socket", "mpa/internal/turns", "iwarptest"}, g.Missing()); diff != "" {
		t.Errorf("missing directories (-want +got):\n%s", diff)
	}
}

func TestAModuleWithoutANameIsAnError(t *testing.T) {
	if _, err := Read(fstest.MapFS{"go.mod": {Data: []byte("go 1.26\n")}}); err == nil {
		t.Error("no error, want one about the module's name")
	}
}
