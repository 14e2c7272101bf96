//go:build !unix

package files

import "io/fs"

// addSystemInfo adds what only some systems tell of a file: nothing here.
func addSystemInfo(*Info, fs.FileInfo) {}
