// This file is the results of verbs besides success (Verbs §9.5.1).

package verbs

import (
	"errors"
	"fmt"
)

// The results that a verb can have besides success (Verbs §9.5.1). A verb that
// fails changes nothing. Compare them by errors.Is.
var (
	ErrResources   = errors.New("insufficient resources to complete the request")
	ErrRNIC        = errors.New("invalid RNIC handle")
	ErrName        = errors.New("invalid RNIC name")
	ErrRNICInUse   = errors.New("RNIC in use")
	ErrBlockList   = errors.New("Block List mode not supported")
	ErrPD          = errors.New("invalid protection domain")
	ErrPDInUse     = errors.New("protection domain is in use")
	ErrCQ          = errors.New("invalid CQ handle")
	ErrCQInUse     = errors.New("one or more work queues are still associated with the CQ")
	ErrCQEntries   = errors.New("number of CQ entries exceeds the RNIC's capability")
	ErrCQEmpty     = errors.New("CQ empty")
	ErrHandler     = errors.New("invalid completion event handler identifier")
	ErrNotify      = errors.New("invalid notify type")
	ErrShrink      = errors.New("attempt to shrink failed: too many elements still present")
	ErrSRQ         = errors.New("invalid S-RQ handle")
	ErrSRQInUse    = errors.New("one or more QPs are still associated with the S-RQ")
	ErrSRQLimit    = errors.New("S-RQ limit out of range")
	ErrRQOfSRQ     = errors.New("RQ associated with S-RQ: post to the S-RQ")
	ErrRQLimit     = errors.New("QP RQ limit out of range")
	ErrQP          = errors.New("invalid QP handle")
	ErrAttribute   = errors.New("cannot change QP attribute")
	ErrWRMax       = errors.New("maximum number of work requests exceeds the RNIC's capability")
	ErrSGEMax      = errors.New("maximum number of SGEs exceeds the RNIC's capability")
	ErrORD         = errors.New("value for ORD exceeds the RNIC's capability")
	ErrIRD         = errors.New("value for IRD exceeds the RNIC's capability")
	ErrState       = errors.New("invalid QP state for the request")
	ErrFlushing    = errors.New("work requests are still being flushed")
	ErrLLP         = errors.New("invalid LLP stream handle")
	ErrQPWindows   = errors.New("memory windows are still bound to the QP")
	ErrFull        = errors.New("too many work requests posted")
	ErrOp          = errors.New("invalid operation type")
	ErrSGLFormat   = errors.New("invalid scatter/gather list format")
	ErrSGLLength   = errors.New("invalid scatter/gather list length")
	ErrModifier    = errors.New("invalid modifier")
	ErrSTag        = errors.New("invalid STag index")
	ErrMRWindows   = errors.New("memory windows are still bound to the region")
	ErrAccess      = errors.New("invalid access rights requested")
	ErrLength      = errors.New("invalid length")
	ErrVA          = errors.New("invalid virtual address")
	ErrFBO         = errors.New("invalid first byte offset")
	ErrBufferEntry = errors.New("invalid physical buffer list entry")
	ErrBufferSize  = errors.New("invalid physical buffer size")
)

// fail wraps a result in what was attempted and what was wrong.
func fail(verb string, result error, format string, args ...any) error {
	if format == "" {
		return fmt.Errorf("verbs: %s: %w", verb, result)
	}
	return fmt.Errorf("verbs: %s: %w: %s", verb, result, fmt.Sprintf(format, args...))
}
