package verbs

// An SRQ is a shared receive queue (Verbs §6.3).
type SRQ struct{}
