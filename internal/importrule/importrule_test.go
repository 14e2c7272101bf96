package importrule

import (
	"fmt"
	"os"
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
	for _, layer := range g.Missing() {
		t.Errorf("there is no package %s: the layers are %s", layer, strings.Join(layers, ", "))
	}
	for _, line := range g.Check() {
		t.Error(line)
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
				"cm/a.go":     {"net", m + "verbs", m + "mpa"},
				"verbs/a.go":  {"sync", m + "memory", m + "rdmap"},
				"memory/a.go": {m + "ddp"},
				"rdmap/a.go":  {m + "ddp"},
				"ddp/a.go":    {m + "mpa"},
				"mpa/a.go":    {"net", "golang.org/x/sys/unix"},
				"cmd/w/a.go":  {m + "cm", m + "capture", "example.org/cli", m + "cmd/w/internal"},
			},
		},
		"upwards": {
			imports: map[string][]string{"mpa/a.go": {m + "ddp"}},
			want:    []string{`mpa/a.go:2: mpa imports "example.test/m/ddp": mpa is the lowest layer and imports no package of this module but internal ones`},
		},
		"upwards, in a file for one platform": {
			imports: map[string][]string{"rdmap/a_plan9.go": {m + "verbs"}},
			want:    []string{`rdmap/a_plan9.go:2: rdmap imports "example.test/m/verbs": rdmap imports only downwards: ddp, mpa`},
		},
		"through a helper": {
			imports: map[string][]string{"ddp/a.go": {m + "internal/h"}, "internal/h/h.go": {"os", m + "rdmap"}},
			want:    []string{`internal/h/h.go:3: ddp, through internal/h, imports "example.test/m/rdmap": ddp imports only downwards: mpa`},
		},
		"aside": {
			imports: map[string][]string{"ddp/a.go": {m + "conformance"}},
			want:    []string{`ddp/a.go:2: ddp imports "example.test/m/conformance": ddp imports only downwards: mpa`},
		},
		"sockets": {
			imports: map[string][]string{"verbs/a.go": {"net/netip"}},
			want:    []string{`verbs/a.go:2: verbs imports "net/netip": verbs knows nothing of sockets and does not import net`},
		},
		"a library in the core": {
			imports: map[string][]string{"cm/a.go": {"example.org/log", "golang.org/x/system"}},
			want: []string{
				`cm/a.go:2: cm imports "example.org/log": the core imports only the standard library and golang.org/x/sys`,
				`cm/a.go:3: cm imports "golang.org/x/system": the core imports only the standard library and golang.org/x/sys`,
			},
		},
		"a library through a helper": {
			imports: map[string][]string{"cm/a.go": {m + "internal/h"}, "internal/h/h.go": {"example.org/log"}},
			want:    []string{`internal/h/h.go:2: cm, through internal/h, imports "example.org/log": the core imports only the standard library and golang.org/x/sys`},
		},
		"foreign code": {
			imports: map[string][]string{"mpa/a.go": {"plugin"}, "cmd/w/a.go": {"os/exec"}},
			want:    []string{`mpa/a.go:2: mpa imports "plugin": the core runs no code that it was not compiled from: not C, plugin, os/exec`},
		},
		"a command": {
			imports: map[string][]string{"conformance/a.go": {m + "cmd/w"}, "cm/a_test.go": {m + "cmd/w"}},
			want: []string{
				`cm/a_test.go:2: cm imports "example.test/m/cmd/w": nothing imports a command`,
				`conformance/a.go:2: conformance imports "example.test/m/cmd/w": nothing imports a command`,
			},
		},
		"capture": {
			imports: map[string][]string{"conformance/a.go": {m + "capture"}, "mpa/a_test.go": {m + "capture"}},
			want:    []string{`conformance/a.go:2: conformance imports "example.test/m/capture": capture is imported by commands and tests only`},
		},
		"what the go command passes over": {
			imports: map[string][]string{
				"mpa/testdata/a.go": {m + "cmd/w"}, "mpa/_a.go": {m + "verbs"}, ".mpa/a.go": {m + "cmd/w"}, "mpa/vendor/a.go": {m + "cmd/w"},
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
	fsys := module(map[string][]string{"mpa/a.go": nil, "interop/a.go": {"example.test/m/cmd/w"}})
	fsys["interop/go.mod"] = &fstest.MapFile{Data: []byte("module example.test/m/interop\n")}
	g, err := Read(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if broken := g.Check(); broken != nil {
		t.Errorf("broken rules: %q, want none", broken)
	}
}

func TestALayerThatIsGoneIsMissed(t *testing.T) {
	g, err := Read(module(map[string][]string{
		"nfs/a.go": nil, "nfs/gateway/a.go": nil, "nfs/mount/a.go": nil, "nfs/nlm/a.go": nil, "nfs/folder/a.go": nil, "nfs/client/a.go": nil, "rpcrdma/a.go": nil, "rpctcp/a.go": nil, "oncrpc/a.go": nil, "cm/a.go": nil, "origin/a.go": nil, "verbs/a.go": nil, "memory/a.go": nil, "ddp/a.go": nil, "mpa/a_test.go": nil,
	}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"rdmap", "mpa"}, g.Missing()); diff != "" {
		t.Errorf("missing layers (-want +got):\n%s", diff)
	}
}

func TestAModuleWithoutANameIsAnError(t *testing.T) {
	if _, err := Read(fstest.MapFS{"go.mod": {Data: []byte("go 1.26\n")}}); err == nil {
		t.Error("no error, want one about the module's name")
	}
}
