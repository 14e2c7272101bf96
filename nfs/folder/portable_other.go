//go:build !linux && !darwin && !windows

// This file is for systems without known attributes. A file is identified by its name, so
// handles do not survive renaming.

package folder

import (
	"hash/fnv"
	"io/fs"
)

func (v *portable) identify(name string, _ fs.FileInfo, st *info) error {
	h := fnv.New64a()
	h.Write([]byte(name))
	st.key.ino = h.Sum64()
	return nil
}
