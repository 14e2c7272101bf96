package dropin

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

const module = "module github.com/weft-rdma/weft/dropin\n\ngo 1.26.0\n"

func TestTheSourceIsTheCheckoutAroundAPlace(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "dropin", "go.mod"), module)
	inside := filepath.Dir(write(t, filepath.Join(root, "a", "b", "file"), ""))
	elsewhere := t.TempDir()
	for _, c := range []struct {
		named  string
		places []string
		want   string
	}{
		{places: []string{inside}, want: root},
		{places: []string{root}, want: root},
		{places: []string{elsewhere, inside}, want: root},
		{named: root, places: []string{elsewhere}, want: root},
		{named: inside},
		{places: []string{elsewhere}},
	} {
		got, err := FindSource(c.named, c.places...)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("named %q, at %v: %q, %v", c.named, c.places, got, err)
		}
	}
	if _, err := FindSource("", elsewhere); !errors.Is(err, ErrNoSource) {
		t.Errorf("the error is %v", err)
	}
}

func TestTheFingerprintChangesWithWhatTheLibraryIsMadeOf(t *testing.T) {
	root := t.TempDir()
	write(t, filepath.Join(root, "dropin", "c", "cq.c"), "1")
	of := func() string {
		t.Helper()
		print, err := fingerprint(root)
		if err != nil {
			t.Fatal(err)
		}
		return print
	}
	was := of()
	for _, name := range []string{"README.md", "verbs/cq_test.go", "docs/x.go", ".git/x.c", "cmd/weft/main.go"} {
		write(t, filepath.Join(root, name), "")
		if of() != was {
			t.Errorf("%s is no part of the library", name)
		}
	}
	for _, name := range []string{"verbs/cq.go", "dropin/c/qp.c", "go.mod"} {
		write(t, filepath.Join(root, name), "")
		if now := of(); now == was {
			t.Errorf("%s is a part of the library", name)
		} else {
			was = now
		}
	}
	for _, name := range []string{"GOARCH", "CC", "CFLAGS"} {
		t.Setenv(name, "another")
		if now := of(); now == was {
			t.Errorf("%s changes what is built", name)
		} else {
			was = now
		}
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(root, "dropin", "c", "cq.c"), later, later); err != nil {
		t.Fatal(err)
	}
	if of() == was {
		t.Error("a file was written again")
	}
}

func TestALibraryThatIsThereIsNotBuiltAgain(t *testing.T) {
	b := Builder{Source: t.TempDir(), Cache: t.TempDir(), Say: t.Logf}
	print, err := fingerprint(b.Source)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		write(t, filepath.Join(b.Cache, print, name), "")
	}
	if dir, err := b.Build(context.Background()); err != nil || dir != filepath.Join(b.Cache, print) {
		t.Errorf("%s, %v", dir, err)
	}
}

func TestLibrariesThatNobodyUsesAreRemoved(t *testing.T) {
	b := Builder{Source: t.TempDir(), Cache: t.TempDir(), Say: t.Logf}
	print, err := fingerprint(b.Source)
	if err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	ages := map[string]time.Duration{print: 90 * day, "old": 31 * day, "other": 29 * day, "another": time.Hour, "building-1": 40 * day, "building-2": 0}
	for name, age := range ages {
		dir := filepath.Join(b.Cache, name)
		for _, file := range files {
			write(t, filepath.Join(dir, file), "")
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // of the second time the library was used just now
		if _, err := b.Build(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(filepath.Join(b.Cache, print))
	if err != nil || time.Since(info.ModTime()) > day {
		t.Errorf("%v, %v: the time of the library is not that of its use", info, err)
	}
	entries, err := os.ReadDir(b.Cache)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{print, "another", "building-2", "other"}
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("left are %v, expected %v", left, want)
	}
}

func TestWhatIsMissingIsNamedWithTheCommandsForIt(t *testing.T) {
	is := func(missing bool) func(context.Context) bool { return func(context.Context) bool { return missing } }
	all := []tool{{"a hammer", "deb-hammer", "rpm-hammer", is(true)}, {"nails", "deb-nails", "rpm-nails", is(false)}, {"a saw", "deb-saw", "rpm-saw", is(true)}}
	err := missingOf(context.Background(), all)
	for _, want := range []string{"lacks a hammer, a saw.", "apt-get install deb-hammer deb-saw ", "dnf install rpm-hammer rpm-saw "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if lines, ok := err.(interface{ Unwrap() []error }); !ok || len(lines.Unwrap()) != 3 {
		t.Errorf("%#v is not three lines", err)
	}
	if err := missingOf(context.Background(), all[1:2]); err != nil {
		t.Error(err)
	}
	err = missingOf(context.Background(), []tool{{"a lathe", "", "rpm-lathe", is(true)}})
	if err == nil || strings.Contains(err.Error(), "apt-get") || !strings.Contains(err.Error(), "dnf install rpm-lathe ") {
		t.Errorf("what Debian has no package of: %v", err)
	}
}

func TestAGoThatCannotGetAnotherIsMissing(t *testing.T) {
	for _, c := range []struct {
		toolchain string
		lacks     bool
	}{{"", true}, {"auto", false}, {"local", false}} {
		dir := t.TempDir()
		program := write(t, filepath.Join(dir, "go"), "#!/bin/sh\necho "+c.toolchain+"\n")
		if err := os.Chmod(program, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", dir)
		if got := lacksGo(context.Background()); got != c.lacks {
			t.Errorf("GOTOOLCHAIN %q: missing is %v", c.toolchain, got)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if !lacksGo(context.Background()) {
		t.Error("there is no Go, and it is not missing")
	}
}

func TestWhatAToolSaysIsGivenALineEach(t *testing.T) {
	err := execute(context.Background(), t.TempDir(), []string{"WORD=two"}, "sh", "-c", "echo one; printf '\\t%s\\n' $WORD; exit 3")
	lines, ok := err.(interface{ Unwrap() []error })
	if !ok || len(lines.Unwrap()) != 3 || lines.Unwrap()[1].Error() != "one" || lines.Unwrap()[2].Error() != "  two" {
		t.Errorf("%#v", err)
	}
}

func TestModulesAreKeptBesideTheLibraryWhereThereIsNoHome(t *testing.T) {
	b := Builder{Cache: filepath.Join(t.TempDir(), "dropin")}
	t.Setenv("GOMODCACHE", filepath.Join(t.TempDir(), "mod"))
	if got := b.modules(context.Background()); got != nil {
		t.Errorf("with a home: %q", got)
	}
	t.Setenv("GOMODCACHE", filepath.Join(write(t, filepath.Join(t.TempDir(), "file"), ""), "mod"))
	t.Setenv("GOFLAGS", "")
	if got, want := b.modules(context.Background()), []string{"GOMODCACHE=" + b.Cache + "-modules", "GOFLAGS=-modcacherw"}; !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
}

func TestTheEnvironmentNamesTheLibraryFirstAndOnce(t *testing.T) {
	o := Options{Persona: "rc", Verbose: true, NoCRC: true, Congestion: "reno"}
	env := o.Environment([]string{"A=b", "LD_LIBRARY_PATH=/x:/lib:", "WEFT_PERSONA=rnic", "WEFT_PCAP=mine"}, "/lib")
	slices.Sort(env)
	want := []string{"A=b", "LD_LIBRARY_PATH=/lib:/x", "WEFT_CONGESTION=reno", "WEFT_CRC=off", "WEFT_PCAP=mine", "WEFT_PERSONA=rc", "WEFT_VERBOSE=1"}
	if !slices.Equal(env, want) {
		t.Errorf("%q, expected %q", env, want)
	}
	o = Options{Preload: true, TLS: TLS{On: true, Cert: "/c", Key: "/k", CA: "/a", Name: "host", KeyLog: "/log"}}
	want = []string{"LD_PRELOAD=/lib/" + Library, "WEFT_TLS=1", "WEFT_TLS_CERT=/c", "WEFT_TLS_KEY=/k", "WEFT_TLS_CA=/a", "WEFT_TLS_NAME=host", "WEFT_TLS_KEYLOG=/log"}
	if env := o.Environment(nil, "/lib"); !slices.Equal(env, want) {
		t.Errorf("with TLS: %q, expected %q", env, want)
	}
	o = Options{Preload: true}
	if env := o.Environment(nil, "/lib"); !slices.Equal(env, []string{"LD_PRELOAD=/lib/" + Library}) {
		t.Errorf("preloaded: %q", env)
	}
	o = Options{View: "/view", AlsoHost: "/host"}
	env = o.Environment([]string{"LD_PRELOAD=/other"}, "/lib")
	slices.Sort(env)
	if !slices.Equal(env, []string{"LD_LIBRARY_PATH=/lib", "LD_PRELOAD=/lib/" + View + ":/other", "WEFT_ALSO_HOST=/host", "WEFT_VIEW=/view"}) {
		t.Errorf("with a view: %q", env)
	}
}

func TestAFolderThatTheLoaderMisreadsIsRefused(t *testing.T) {
	for _, c := range []struct {
		dir string
		o   Options
		ok  bool
	}{
		{"/home/a user/lib", Options{}, true},
		{"/home/a user/lib", Options{Preload: true}, false},
		{"/home/a user/lib", Options{View: "/view"}, false},
		{"/a:b", Options{}, false},
		{"/a;b", Options{}, false},
		{"/$LIB", Options{}, false},
		{"/lib", Options{Preload: true, View: "/view"}, true},
	} {
		if err := c.o.Check(c.dir); (err == nil) != c.ok {
			t.Errorf("%q, %+v: %v", c.dir, c.o, err)
		}
	}
}

func TestAProgramThatTakesNoLibraryIsRefused(t *testing.T) {
	script := write(t, filepath.Join(t.TempDir(), "script"), "#!/bin/sh\n")
	if _, err := FindProgram(script); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a file that cannot be executed: %v", err)
	}
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := FindProgram(script); err != nil || got != script {
		t.Errorf("a script: %q, %v", got, err)
	}
	if err := os.Chmod(script, 0o755|fs.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if _, err := FindProgram(script); err == nil {
		t.Error("a set-uid program was taken")
	}
	if _, err := FindProgram("no-such-program-at-all"); err == nil {
		t.Error("a program that does not exist was found")
	}
}

func TestAProgramOfAnotherProcessorIsRefused(t *testing.T) {
	// The header of a program of 32 bits for the 80386.
	header := make([]byte, 52)
	copy(header, "\x7fELF\x01\x01\x01")
	header[16], header[18], header[20], header[40] = 2, 3, 1, 52
	program := write(t, filepath.Join(t.TempDir(), "program"), string(header))
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := FindProgram(program); err == nil || !strings.Contains(err.Error(), "EM_386") {
		t.Errorf("the error is %v", err)
	}
}
