//go:build !linux && !darwin && !windows

// This file is for systems of which nothing is known: a file is its name and the
// device it is on, so that handles do not survive renaming.

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
