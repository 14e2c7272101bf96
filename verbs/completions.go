package verbs

// This file is the completions of a queue as the range of a loop.

import (
	"context"
	"iter"
)

// Completions are for a loop over what completes, in its order, as it comes:
//
//	for wc := range cq.Completions(ctx) {
//
// The loop waits as [CQ.Wait] does, and ends with the context, or when the CQ is no
// more. Afterwards context.Cause(ctx) tells the former; if it is nil [CQ.PollOne]
// tells the latter, with ErrCQ or ErrRNIC.
//
// Each completion is taken when its turn comes, not before: all that the loop has not
// been given when it is left stays in the CQ, for another loop or for Poll. Several
// loops, and others who poll, share the completions: each goes to one of them.
func (cq *CQ) Completions(ctx context.Context) iter.Seq[WC] { return completions(ctx, cq) }

// Completions are for a loop over what completes; see [CQ.Completions].
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
