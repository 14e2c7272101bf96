// This file is the completion handlers of an RNIC (Verbs §9.4.1).

package verbs

import "maps"

// A HandlerID identifies a completion handler of one RNIC. 0 is none.
type HandlerID uint64

// handlers are those that are set. A map is not changed once it is here, so that
// a notification looks its handler up without a lock.
type handlers = map[HandlerID]func(*CQ)

// SetCompletionHandler sets, changes or clears a function that is called for
// the notifications of all CQs that were created with its identifier (Set
// Completion Event Handler, Verbs §9.4.1):
//
//	SetCompletionHandler(fn, 0)     sets a new one and returns its identifier
//	SetCompletionHandler(fn, id)    puts fn in place of the one before
//	SetCompletionHandler(nil, id)   clears it: its CQs call nothing, until it is set again
//
// This requests no notification; [CQ.RequestNotify] does. The function gets the CQ;
// CQ.RNIC returns the RNIC. Calls for one CQ are made one at a time, in a goroutine of
// its own, and may use any verb. A call in progress continues when the handler is
// changed; calls that begin later are of the new function.
//
// The results besides success are ErrRNIC, ErrHandler for an identifier that was
// never given out, and for nil with 0, and ErrResources.
func (r *RNIC) SetCompletionHandler(fn func(*CQ), id HandlerID) (HandlerID, error) {
	const verb = "set completion event handler"
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.alive(verb); err != nil {
		return 0, err
	}
	set := *r.handlers.Load()
	switch {
	case fn == nil && id == 0:
		return 0, fail(verb, ErrHandler, "no function and no identifier")
	case id > r.lastHandler:
		return 0, fail(verb, ErrHandler, "%d was never given out", id)
	case fn != nil && set[id] == nil && len(set) >= r.limits.CompletionHandlers:
		return 0, r.limited(verb, ErrResources, "CompletionHandlers", "the limit is %d completion handlers", r.limits.CompletionHandlers)
	}
	if id == 0 {
		r.lastHandler++
		id = r.lastHandler
	}
	set = maps.Clone(set)
	if set[id] = fn; fn == nil {
		delete(set, id)
	}
	r.handlers.Store(&set)
	return id, nil
}

// completionHandler is the function of id, nil if it is not set.
func (r *RNIC) completionHandler(id HandlerID) func(*CQ) { return (*r.handlers.Load())[id] }
