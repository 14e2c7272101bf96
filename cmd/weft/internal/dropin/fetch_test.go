package dropin

import (
	"archive/zip"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// publish puts a version of a module into a proxy that is a folder.
func publish(t *testing.T, proxy, module, version string, files map[string]string) {
	t.Helper()
	at := filepath.Join(proxy, filepath.FromSlash(module), "@v")
	write(t, filepath.Join(at, version+".info"), `{"Version":"`+version+`"}`)
	write(t, filepath.Join(at, "list"), version+"\n")
	write(t, filepath.Join(at, version+".mod"), files["go.mod"])
	archive, err := os.Create(filepath.Join(at, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	w := zip.NewWriter(archive)
	for name, text := range files {
		f, err := w.Create(module + "@" + version + "/" + name)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSourcesAreFetchedAsModulesAndLaidOutAsACheckout(t *testing.T) {
	proxy := t.TempDir()
	for name, value := range map[string]string{
		"GOPROXY": "file://" + filepath.ToSlash(proxy), "GOMODCACHE": t.TempDir(), "GOFLAGS": "-modcacherw", "GOSUMDB": "off",
	} {
		t.Setenv(name, value)
	}
	const version = "v0.7.0"
	publish(t, proxy, modulePath, version, map[string]string{"go.mod": "module " + modulePath + "\n\ngo 1.26.0\n", "verbs/cq.go": "package verbs\n"})
	b := Builder{Cache: filepath.Join(t.TempDir(), "dropin"), Say: t.Logf}
	if dir, err := b.Fetch(t.Context(), version); !errors.Is(err, ErrNoSource) {
		t.Errorf("without the library's own module: %q, %v", dir, err)
	}
	publish(t, proxy, modulePath+"/dropin", version, map[string]string{"go.mod": module, "c/cq.c": "int cq;\n"})
	dir, err := b.Fetch(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "verbs/cq.go", "dropin/go.mod", "dropin/c/cq.c"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	t.Setenv("GOPROXY", "off")
	if again, err := b.Fetch(t.Context(), version); err != nil || again != dir {
		t.Errorf("fetched once, later: %q, %v", again, err)
	}
}

func TestAnotherModuleOfTheSameCommitIsAskedForByIt(t *testing.T) {
	for version, want := range map[string]string{
		"v0.7.0": "v0.7.0", "v1.0.0-rc.1": "v1.0.0-rc.1",
		"v0.0.0-20261122230450-169c65b1dcbd": "169c65b1dcbd", "v0.7.1-0.20261122230450-169c65b1dcbd": "169c65b1dcbd",
	} {
		if got := versionOfCommit(version); got != want {
			t.Errorf("%s: %s, expected %s", version, got, want)
		}
	}
}
