// This file is protection domains.

package memory

import "fmt"

// A PD is a protection domain (Verbs §5.2, RFC 5042 §2.2.4): streams may use only the
// STags of their own domain. It is identified by its pointer; nothing on the wire can
// name one.
type PD struct {
	table   *Table
	regions int  // that belong to it; Table.mu
	windows int  // that belong to it; Table.mu
	freed   bool // Table.mu
}

// AllocPD creates a protection domain.
func (t *Table) AllocPD() *PD { return &PD{table: t} }

// FreePD frees a protection domain. It fails with ErrPDInUse while a region
// or window belongs to it, and with ErrPD if pd is not a live domain of t; a failure
// changes nothing.
func (t *Table) FreePD(pd *PD) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.checkPD(pd); err != nil {
		return fmt.Errorf("memory: free protection domain: %w", err)
	}
	if pd.regions+pd.windows != 0 {
		return fmt.Errorf("memory: free protection domain: %w by %d regions and %d windows; deallocate them first",
			ErrPDInUse, pd.regions, pd.windows)
	}
	pd.freed = true
	return nil
}

// checkPD returns an error if pd is not a domain of t that exists. It needs t.mu.
func (t *Table) checkPD(pd *PD) error {
	switch {
	case pd == nil:
		return fmt.Errorf("%w: nil", ErrPD)
	case pd.table != t:
		return fmt.Errorf("%w: of another RNIC", ErrPD)
	case pd.freed:
		return fmt.Errorf("%w: already freed", ErrPD)
	}
	return nil
}
