// This file writes the completions of shells.

package main

import (
	"context"
	"os"
)

// completionFiles are the files of the completions by shell, as the shells want them named.
var completionFiles = []struct{ shell, name string }{{"bash", "weft"}, {"zsh", "_weft"}, {"fish", "weft.fish"}}

// complete writes what `weft completion` prints for each shell, and returns the files.
func (b *builder) complete(ctx context.Context) (files []string, err error) {
	dir := b.file("completions")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for _, c := range completionFiles {
		script, err := execute(ctx, b.root, nil, b.file("native"), "completion", c.shell)
		if err != nil {
			return nil, err
		}
		file := dir + "/" + c.name
		if err := os.WriteFile(file, []byte(script+"\n"), 0o644); err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}
