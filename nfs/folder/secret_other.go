//go:build !unix

// This file is for systems without owners and modes, where a file has the permissions of
// its directory.

package folder

import "io/fs"

func foreign(fs.FileInfo, fs.FileMode) string { return "" }
