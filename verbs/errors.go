package verbs

import (
	"errors"
	"fmt"
)

// The results that a verb can have besides success (Verbs §9.5.1). A verb that
// fails changes nothing. errors.Is tells them apart.
var (
	ErrResources = errors.New("insufficient resources to complete the request")
	ErrRNIC      = errors.New("invalid RNIC handle: the RNIC has been closed")
	ErrPD        = errors.New("invalid protection domain")
	ErrPDInUse   = errors.New("protection domain is in use")
	ErrCQ        = errors.New("invalid CQ handle")
	ErrCQInUse   = errors.New("one or more work queues are still associated with the CQ")
	ErrCQEntries = errors.New("number of CQ entries exceeds the RNIC's capability")
	ErrNotify    = errors.New("invalid notify type")
	ErrQP        = errors.New("invalid QP handle")
	ErrWRMax     = errors.New("maximum number of work requests exceeds the RNIC's capability")
	ErrSGEMax    = errors.New("maximum number of SGEs exceeds the RNIC's capability")
	ErrORD       = errors.New("value for ORD exceeds the RNIC's capability")
	ErrIRD       = errors.New("value for IRD exceeds the RNIC's capability")
	ErrState     = errors.New("invalid QP state for the request")
	ErrFlushing  = errors.New("work requests are still being flushed")
	ErrLLP       = errors.New("invalid LLP stream handle")
	ErrFull      = errors.New("too many work requests posted")
	ErrOp        = errors.New("invalid operation type")
	ErrSGLFormat = errors.New("invalid scatter/gather list format")
	ErrSGLLength = errors.New("invalid scatter/gather list length")
	ErrModifier  = errors.New("invalid modifier")
	ErrSTag      = errors.New("invalid STag index")
	ErrAccess    = errors.New("invalid access rights requested")
	ErrLength    = errors.New("invalid length")
	ErrVA        = errors.New("invalid virtual address")
)

// fail puts what was attempted, and what to do about it if anything, before a
// result.
func fail(verb string, result error, format string, args ...any) error {
	if format == "" {
		return fmt.Errorf("verbs: %s: %w", verb, result)
	}
	return fmt.Errorf("verbs: %s: %w: %s", verb, result, fmt.Sprintf(format, args...))
}
