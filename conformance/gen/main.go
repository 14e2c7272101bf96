// Gen writes docs/conformance.md from the requirement tables and the claims of
// the tests. Run it by "go generate ./conformance" from anywhere in the module.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/weft-rdma/weft/conformance"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := conformance.Root(".")
	if err != nil {
		return err
	}
	audit, err := conformance.New(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, conformance.PagePath), audit.Page(), 0o644)
}
