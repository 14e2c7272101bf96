// This file gets the sources where there is no checkout, as after `go install`: the go
// command has them as modules, of the version that this command is of. What it has
// downloaded before it finds without a network.

package dropin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
)

const modulePath = "github.com/weft-rdma/weft"

// Version is the version of the module that this command was built from. It is empty
// where that is no published one.
func Version() string {
	b, ok := debug.ReadBuildInfo()
	if !ok || b.Main.Path != modulePath || !strings.HasPrefix(b.Main.Version, "v") || strings.Contains(b.Main.Version, "+") {
		return ""
	}
	return b.Main.Version
}

// Fetch returns the root of sources that are laid out as a checkout is, of a version of
// the module. They are kept in the Builder's cache.
func (b *Builder) Fetch(ctx context.Context, version string) (dir string, err error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", checkTools(ctx)
	}
	dir = b.Cache + "-source-" + version
	if isSource(dir) {
		return dir, nil
	}
	if err := Private(filepath.Dir(dir)); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), "fetching-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	b.Say("fetching the sources of the library, %s", version)
	for _, m := range []struct{ name, to string }{
		{modulePath + "@" + version, fresh},
		{modulePath + "/dropin@" + versionOfCommit(version), filepath.Join(fresh, "dropin")},
	} {
		from, err := b.download(ctx, fresh, m.name)
		if err != nil {
			return "", err
		}
		if err := os.CopyFS(m.to, os.DirFS(from)); err != nil {
			return "", err
		}
	}
	if err := os.Rename(fresh, dir); err != nil && !isSource(dir) { // somebody else may have been first
		return "", err
	}
	return dir, nil
}

// versionOfCommit is the version of another module of the same commit: the same, if it
// is that of a release, or else the commit, which the go command finds the version of.
func versionOfCommit(version string) string {
	if parts := strings.Split(version, "-"); len(parts) >= 3 && len(parts[len(parts)-1]) == 12 {
		return parts[len(parts)-1]
	}
	return version
}

// download has the go command download a module and returns where it is.
func (b *Builder) download(ctx context.Context, dir, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "GO111MODULE=on"), b.modules(ctx)...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	var got struct{ Dir, Error string }
	if decodeErr := json.Unmarshal(out, &got); decodeErr != nil && !errors.Is(decodeErr, io.EOF) && err == nil {
		err = decodeErr
	}
	if got.Dir == "" || err != nil {
		return "", errors.Join(ErrNoSource, fmt.Errorf("go mod download %s: %s", module, strings.TrimSpace(got.Error+complaint.String())))
	}
	return got.Dir, nil
}
