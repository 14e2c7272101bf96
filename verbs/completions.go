// This file is the iterator over the completions of a CQ.

package verbs

import (
	"context"
	"iter"
)

// Completions ranges over the completions in their order, as they come:
//
//	for wc := range cq.Completions(ctx) {
//
// The loop waits as [CQ.Wait] does. It ends when the context ends or the CQ is
// destroyed. If context.Cause(ctx) is nil afterwards, the error of [CQ.PollOne] says
// what happened to the CQ: ErrCQ or ErrRNIC.
//
// A completion is polled when the loop asks for it, not before: when the loop is left,
// the others stay in the CQ for another loop or for Poll. Several loops and pollers
// share the completions: each goes to one of them.
func (cq *CQ) Completions(ctx context.Context) iter.Seq[WC] { return completions(ctx, cq) }

// Completions ranges over the completions; see [CQ.Completions].
func (u *UserCQ) Completions(ctx context.Context) iter.Seq[WC] { return completions(ctx, u) }

func completions(ctx context.Context, cq interface {
	Wait(context.Context) error
	Poll([]WC) int
}) iter.Seq[WC] {
	return func(yield func(WC) bool) {
		var wc [1]WC
		for ctx.Err() == nil && cq.Wait(ctx) == nil {
			if cq.Poll(wc[:]) > 0 && !yield(wc[0]) { // somebody else may have been first
				return
			}
		}
	}
}
