// This file is Query RNIC: the attributes of an RNIC.

package verbs

import (
	"time"

	"github.com/weft-rdma/weft/memory"
)

// A Mode says how physical buffer lists describe memory (Verbs §7.6.2).
type Mode uint8

const (
	// PageMode: a list is of pages, all of one of the sizes in Attributes.PageSizes,
	// each at an address that is a multiple of it.
	PageMode Mode = iota
	// BlockMode: a list is of blocks, all of one size within a range, at any
	// address.
	BlockMode
)

func (m Mode) String() string {
	switch m {
	case PageMode:
		return "Page Mode"
	case BlockMode:
		return "Block Mode"
	}
	return "unknown mode"
}

// A DequeueModel says in which order the queue pairs of an S-RQ take its
// receives (Verbs §6.3.4).
type DequeueModel uint8

// ArrivalOrder: a message takes the oldest receive when it begins to arrive.
const ArrivalOrder DequeueModel = 1

func (m DequeueModel) String() string {
	if m == ArrivalOrder {
		return "arrival order"
	}
	return "unknown order"
}

// Attributes are the properties and capabilities of an RNIC (Verbs §9.2.1.2). The maxima of the
// specification are in Limits; Limits.SGEs is that of Sends, of RDMA Writes and
// of receives.
type Attributes struct {
	Name   string
	Vendor string // the maker of the RNIC, for people to read
	Limits Limits // as they are enforced, defaults filled in

	CloseTimeout time.Duration // of Config, or its default

	Mode Mode
	// PageSizes are the sizes of pages in PageMode, ascending; MinBlock and
	// MaxBlock the range of those of blocks in BlockMode. Octets; those of the
	// other mode are not set.
	PageSizes          []int
	MinBlock, MaxBlock int

	ModifyIRD   bool // IRD can be changed after the creation of a queue pair
	IncreaseORD bool // so can ORD, upwards as well
	ModifyWRs   bool // and the depths of its queues

	SRQ          bool         // shared receive queues are supported
	DequeueModel DequeueModel // of theirs

	CQOverflowDetect bool // overflow of a CQ is detected and reported
	Extensions       bool // RFC 7306: atomics and Immediate Data
}

// Query returns the attributes of the RNIC. It fails with ErrRNIC.
func (r *RNIC) Query() (Attributes, error) {
	if err := r.alive("query RNIC"); err != nil {
		return Attributes{}, err
	}
	a := Attributes{
		Name: r.cfg.Name, Vendor: "Weft, a software RNIC", Limits: r.limits, Mode: r.cfg.Mode,
		CloseTimeout: r.cfg.CloseTimeout,
		ModifyIRD:    true, IncreaseORD: true, ModifyWRs: true,
		SRQ: true, DequeueModel: ArrivalOrder,
		CQOverflowDetect: true, Extensions: true,
	}
	if a.Mode == BlockMode {
		a.MinBlock, a.MaxBlock = memory.MinBlockSize, memory.MaxBlockSize
		return a, nil
	}
	for size := memory.MinPageSize; size <= memory.MaxPageSize; size *= 2 {
		a.PageSizes = append(a.PageSizes, size)
		if size == memory.MaxPageSize {
			break // the next would not fit 32 bits
		}
	}
	return a, nil
}
