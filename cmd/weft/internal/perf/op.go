// This file names the operations.

package perf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-rdma/weft/verbs"
)

// An Op is an operation that is measured, by its name in flags and reports.
type Op string

const (
	Write     Op = "write"
	Read      Op = "read"
	Send      Op = "send"
	Immediate Op = "immediate"
	FetchAdd  Op = "fetchadd"
	CmpSwap   Op = "cmpswap"
)

// Ops are all operations, in the order of the table.
var Ops = []Op{Write, Read, Send, Immediate, FetchAdd, CmpSwap}

// wordSize is the size in bytes of the operations that have only one.
const wordSize = 8

// ParseOps reads names of operations, separated by commas.
func ParseOps(s string) ([]Op, error) {
	var ops []Op
	for name := range strings.SplitSeq(s, ",") {
		op := Op(strings.ToLower(strings.TrimSpace(name)))
		if !slices.Contains(Ops, op) {
			return nil, fmt.Errorf("unknown operation %q: expected %s", name, strings.Trim(fmt.Sprint(Ops), "[]"))
		}
		if !slices.Contains(ops, op) {
			ops = append(ops, op)
		}
	}
	return ops, nil
}

// word reports whether op moves one 64-bit word and nothing else.
func (op Op) word() bool { return op == Immediate || op.atomic() }

func (op Op) atomic() bool { return op == FetchAdd || op == CmpSwap }

// fetches reports whether the driver's own completion says that op is done:
// the peer answers by itself.
func (op Op) fetches() bool { return op == Read || op.atomic() }

// receives reports whether op takes a receive of the peer's.
func (op Op) receives() bool { return op == Send || op == Immediate }

// verb is the operation of the work request.
func (op Op) verb() verbs.Op {
	switch op {
	case Write:
		return verbs.OpWrite
	case Read:
		return verbs.OpRead
	case Send:
		return verbs.OpSend
	case Immediate:
		return verbs.OpImmediate
	case FetchAdd:
		return verbs.OpFetchAdd
	}
	return verbs.OpCmpSwap
}
