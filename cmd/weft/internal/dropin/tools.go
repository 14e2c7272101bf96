package dropin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A tool is what building needs, and the packages that it comes from, if there are some.
type tool struct {
	what, debian, fedora string
	missing              func(ctx context.Context) bool
}

var tools = []tool{
	{"a C compiler", "gcc", "gcc", func(context.Context) bool { _, err := compiler(); return err != nil }},
	{"the header infiniband/verbs.h", "libibverbs-dev", "rdma-core-devel", func(ctx context.Context) bool { return !includes(ctx, "infiniband/verbs.h") }},
	{"the header rdma/rdma_user_cm.h", "linux-libc-dev", "kernel-headers", func(ctx context.Context) bool { return !includes(ctx, "rdma/rdma_user_cm.h") }},
	{"Go 1.21 or later (https://go.dev/dl)", "", "golang", lacksGo}, // Debian 12 has 1.19
}

// checkTools returns what is missing to build the library, and the commands that
// install it.
func checkTools(ctx context.Context) error { return missingOf(ctx, tools) }

func missingOf(ctx context.Context, tools []tool) error {
	var what, debian, fedora []string
	for _, t := range tools {
		if t.missing(ctx) {
			what = append(what, t.what)
			debian, fedora = appendName(debian, t.debian), appendName(fedora, t.fedora)
		}
	}
	if what == nil {
		return nil
	}
	said := []error{fmt.Errorf("to build the library this machine lacks %s. As root:", strings.Join(what, ", "))} // a line each
	if debian != nil {
		said = append(said, fmt.Errorf("  apt-get install %s     # Debian, Ubuntu", strings.Join(debian, " ")))
	}
	return errors.Join(append(said, fmt.Errorf("  dnf install %s     # Fedora", strings.Join(fedora, " ")))...)
}

func appendName(names []string, name string) []string {
	if name == "" {
		return names
	}
	return append(names, name)
}

// lacksGo reports whether there is no go command, or one that cannot get the version of Go
// that the sources name: those before 1.21 do not know that they may.
func lacksGo(ctx context.Context) bool {
	if _, err := exec.LookPath("go"); err != nil {
		return true
	}
	out, err := exec.CommandContext(ctx, "go", "env", "GOTOOLCHAIN").Output()
	return err == nil && strings.TrimSpace(string(out)) == ""
}

// includes reports whether the compiler finds a header.
func includes(ctx context.Context, header string) bool {
	cc, err := compiler()
	if err != nil {
		_, err := os.Stat(filepath.Join("/usr/include", header))
		return err == nil
	}
	cmd := exec.CommandContext(ctx, cc, "-E", "-x", "c", "-")
	cmd.Stdin = strings.NewReader("#include <" + header + ">\n")
	return cmd.Run() == nil
}
