// Gen writes docs/conformance.md and the pages in docs/conformance from the requirement
// tables and the claims of the tests. Run it by "go generate ./conformance".
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
	dir := filepath.Join(root, filepath.FromSlash(conformance.PagesPath))
	if err := os.RemoveAll(dir); err != nil { // also pages of documents that are gone
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for page, text := range audit.Pages() {
		if err := os.WriteFile(filepath.Join(root, filepath.FromSlash(page)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
