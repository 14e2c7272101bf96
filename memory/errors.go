package memory

import "errors"

// What Register, FreePD and Deallocate refuse, to be told apart with errors.Is.
// The error returned says more: which object, what was found and expected.
var (
	// ErrAccess: these rights cannot be had together (Verbs figure 18).
	ErrAccess = errors.New("invalid access rights")
	// ErrLength: a region is to have at least one octet.
	ErrLength = errors.New("invalid length")
	// ErrVA: the region would reach beyond the last tagged offset, 2^64-1.
	ErrVA = errors.New("invalid virtual address")
	// ErrPD: not a protection domain of this Table, or one already freed.
	ErrPD = errors.New("invalid protection domain")
	// ErrPDInUse: the protection domain still has regions.
	ErrPDInUse = errors.New("protection domain in use")
	// ErrRegion: not a region of this Table, or one already deallocated.
	ErrRegion = errors.New("invalid region")
	// ErrRegionLimit: as many regions are registered as Config.MaxRegions allows.
	ErrRegionLimit = errors.New("too many regions")
	// ErrByteLimit: the registered octets would exceed Config.MaxBytes.
	ErrByteLimit = errors.New("too many octets registered")
	// ErrClosed: the Table is closed.
	ErrClosed = errors.New("memory table closed")
)
