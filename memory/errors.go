// This file is the errors of the verbs of a Table.

package memory

import "errors"

// Errors of the verbs of a Table, for errors.Is. The text of the error that is returned
// says more: which object, what was found and expected.
var (
	// ErrAccess: this combination of rights is invalid (Verbs figure 18), or the pages
	// do not have them.
	ErrAccess = errors.New("invalid access rights")
	// ErrLength: a region has to have at least one octet.
	ErrLength = errors.New("invalid length")
	// ErrVA: the region would exceed the last tagged offset, 2^64-1.
	ErrVA = errors.New("invalid virtual address")
	// ErrPD: not a protection domain of this Table, or freed already.
	ErrPD = errors.New("invalid protection domain")
	// ErrPDInUse: the protection domain still has regions or windows.
	ErrPDInUse = errors.New("protection domain in use")
	// ErrFBO: the First Byte Offset is not within the first buffer.
	ErrFBO = errors.New("invalid first byte offset")
	// ErrBufferSize: the buffers of a list can't have this size.
	ErrBufferSize = errors.New("invalid physical buffer size")
	// ErrBufferEntry: a buffer of a list has another size, or is not aligned.
	ErrBufferEntry = errors.New("invalid physical buffer list entry")
	// ErrListLength: FastRegister with a list longer than the region's.
	ErrListLength = errors.New("physical buffer list too long")
	// ErrWrap: a range of tagged offsets would exceed 2^64-1.
	ErrWrap = errors.New("tagged offsets wrap")
	// ErrBounds: a window has to be within its region.
	ErrBounds = errors.New("out of bounds")
	// ErrRegion: not a region of this Table, or the verb does not accept it:
	// deallocated, Shared, not Valid, or with another key.
	ErrRegion = errors.New("invalid region")
	// ErrWindow: not a window of this Table, or deallocated already.
	ErrWindow = errors.New("invalid window")
	// ErrNotInvalid: FastRegister and Bind need an STag that is Invalid.
	ErrNotInvalid = errors.New("STag not in Invalid state")
	// ErrWindows: windows are bound to the region.
	ErrWindows = errors.New("windows are bound to the region")
	// ErrStreamWindows: windows are bound to the stream.
	ErrStreamWindows = errors.New("windows are bound to the stream")
	// ErrRetired: windows can't be bound to the stream any more.
	ErrRetired = errors.New("stream retired")
	// ErrRegionLimit: there are Config.MaxRegions regions already.
	ErrRegionLimit = errors.New("too many regions")
	// ErrWindowLimit: there are Config.MaxWindows windows already.
	ErrWindowLimit = errors.New("too many windows")
	// ErrEntryLimit: the list would have more than Config.MaxEntries entries.
	ErrEntryLimit = errors.New("too many buffer list entries")
	// ErrByteLimit: the registered octets would exceed Config.MaxBytes.
	ErrByteLimit = errors.New("too many octets registered")
	// ErrClosed: the Table is closed.
	ErrClosed = errors.New("memory table closed")
)
