//go:build !unix

// This file is for systems without owners and modes: there the rights to a file are
// those of the folder that it was made in.

package folder

import "io/fs"

func foreign(fs.FileInfo, fs.FileMode) string { return "" }
