// This file is for processors with an assembly routine that writes to a page and
// changes nothing.

//go:build amd64 || arm64

package pages

// touchToWrite adds nothing to *p, atomically. It is written in assembly because the
// race detector takes sync/atomic for a write to the value, and dies of a fault in it.
//
//go:noescape
func touchToWrite(p *byte)
