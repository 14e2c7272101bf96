package memory

import "errors"

// What the verbs of a Table refuse, to be told apart with errors.Is.
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
	// ErrPDInUse: the protection domain still has regions or windows.
	ErrPDInUse = errors.New("protection domain in use")
	// ErrFBO: the First Byte Offset is not within the first buffer.
	ErrFBO = errors.New("invalid first byte offset")
	// ErrBufferSize: no buffer of a list may have this size.
	ErrBufferSize = errors.New("invalid physical buffer size")
	// ErrBufferEntry: a buffer of a list has another size, or is not aligned.
	ErrBufferEntry = errors.New("invalid physical buffer list entry")
	// ErrListLength: FastRegister with a list longer than the region's.
	ErrListLength = errors.New("physical buffer list too long")
	// ErrWrap: a range of tagged offsets would reach beyond 2^64-1.
	ErrWrap = errors.New("tagged offsets wrap")
	// ErrBounds: a window is to lie within its region.
	ErrBounds = errors.New("out of bounds")
	// ErrRegion: not a region of this Table that the verb takes: gone, Shared, not
	// Valid, or with another key.
	ErrRegion = errors.New("invalid region")
	// ErrWindow: not a window of this Table, or one already deallocated.
	ErrWindow = errors.New("invalid window")
	// ErrNotInvalid: FastRegister and Bind take an STag that is Invalid.
	ErrNotInvalid = errors.New("STag not in Invalid state")
	// ErrWindows: windows are bound to the region.
	ErrWindows = errors.New("windows are bound to the region")
	// ErrStreamWindows: windows are bound to the stream.
	ErrStreamWindows = errors.New("windows are bound to the stream")
	// ErrRetired: no window may be bound to the stream any more.
	ErrRetired = errors.New("stream retired")
	// ErrRegionLimit: as many regions are registered as Config.MaxRegions allows.
	ErrRegionLimit = errors.New("too many regions")
	// ErrWindowLimit: as many windows exist as Config.MaxWindows allows.
	ErrWindowLimit = errors.New("too many windows")
	// ErrEntryLimit: no list may be as long, see Config.MaxEntries.
	ErrEntryLimit = errors.New("too many buffer list entries")
	// ErrByteLimit: the registered octets would exceed Config.MaxBytes.
	ErrByteLimit = errors.New("too many octets registered")
	// ErrClosed: the Table is closed.
	ErrClosed = errors.New("memory table closed")
)
