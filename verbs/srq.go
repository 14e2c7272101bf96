package verbs

// This file is the shared receive queue as its consumer sees it (Verbs §6.3,
// §9.2.4).

// An SRQConfig describes a shared receive queue to be created (Verbs §9.2.4.1).
type SRQConfig struct {
	WRs   int // receives outstanding at a time; 0 means 16
	SGEs  int // elements of one scatter/gather list; 0 means 4
	Limit int // an event tells that fewer receives are left than these; 0 is never
}

// An SRQ is a shared receive queue: the receives of many queue pairs.
type SRQ struct {
	pd *PD
}

// PD returns the protection domain of the memory that its receives name.
func (s *SRQ) PD() *PD { return s.pd }
