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

// A tool is what building needs, and where it comes from.
type tool struct {
	what, debian, fedora string
	missing              func(ctx context.Context) bool
}

var tools = []tool{
	{"a C compiler", "gcc", "gcc", func(context.Context) bool { _, err := compiler(); return err != nil }},
	{"the header infiniband/verbs.h", "libibverbs-dev", "rdma-core-devel", func(ctx context.Context) bool { return !includes(ctx, "infiniband/verbs.h") }},
	{"the header rdma/rdma_user_cm.h", "linux-libc-dev", "kernel-headers", func(ctx context.Context) bool { return !includes(ctx, "rdma/rdma_user_cm.h") }},
	{"Go (https://go.dev/dl)", "golang-go", "golang", func(context.Context) bool { _, err := exec.LookPath("go"); return err != nil }},
}

// checkTools returns what is missing to build the library, and the commands that
// install it.
func checkTools(ctx context.Context) error { return missingOf(ctx, tools) }

func missingOf(ctx context.Context, tools []tool) error {
	var what, debian, fedora []string
	for _, t := range tools {
		if t.missing(ctx) {
			what, debian, fedora = append(what, t.what), append(debian, t.debian), append(fedora, t.fedora)
		}
	}
	if what == nil {
		return nil
	}
	return errors.Join( // a line each
		fmt.Errorf("to build the library this machine lacks %s. As root:", strings.Join(what, ", ")),
		fmt.Errorf("  apt-get install %s     # Debian, Ubuntu", strings.Join(debian, " ")),
		fmt.Errorf("  dnf install %s     # Fedora", strings.Join(fedora, " ")))
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
