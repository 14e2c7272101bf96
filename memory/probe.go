// This file checks the rights of this program to the pages of a region.

package memory

import (
	"fmt"

	"github.com/weft-rdma/weft/internal/pages"
)

// probe checks that this program has the rights to the pages of e that the region is to
// have (RFC 5040 §8.1.2 rule 4), if that is configured. It does not change their
// contents.
func (t *Table) probe(e *extent, a Access) error {
	if !t.cfg.ProbePages {
		return nil
	}
	verb, usable := "read", pages.Readable
	if a&LocalWrite != 0 {
		verb, usable = "written", pages.Writable
	}
	octets := 0
	for _, piece := range e.pieces() {
		n, err := usable(piece)
		if octets += n; err != nil {
			return fmt.Errorf("%w: octet %d of %d cannot be %s: %w", ErrAccess, octets, e.length, verb, err)
		}
	}
	return nil
}

// probeShared is probe for the memory of an existing STag. It returns the registration
// that was probed; nil if none was.
func (t *Table) probeShared(existing STag, a Access) (*registration, error) {
	o := t.dir.lookup(existing.Index())
	if !t.cfg.ProbePages || o == nil {
		return nil, nil
	}
	g := o.current.Load()
	if g.stag != existing || !g.hold() {
		return nil, nil
	}
	defer g.release()
	return g, t.probe(&g.extent, a)
}
