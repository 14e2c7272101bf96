// This file is the failure of a whole RNIC, which happens on request only.

package verbs

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/weft-rdma/weft/rdmap"
)

// Fail makes the RNIC fail as hardware does, for tests of how a program handles it:
// EventRNICCatastrophic is raised with err, every stream is ended with a Terminate
// message 0/2/08, as far as it can still be sent, and completions that were not polled
// are lost (RNIC Catastrophic Failure, Verbs figure 25). From then on every verb but
// Close fails with ErrRNIC. Fail itself fails with ErrRNIC if the RNIC is not open.
func (r *RNIC) Fail(err error) error {
	r.mu.Lock()
	if err := r.alive("fail RNIC"); err != nil {
		r.mu.Unlock()
		return err
	}
	r.life.Store(lifeFailed)
	qps := slices.Collect(maps.Values(r.qps))
	cqs := slices.Collect(maps.Keys(r.cqs))
	r.mu.Unlock()

	err = cmp.Or(err, errRNICFailed)
	r.raise(Event{ID: EventRNICCatastrophic, Err: err})
	why := rdmap.NewError(rdmap.RemoteOperation, rdmap.CodeGlobal, "the RNIC failed: %v", err)
	for _, q := range qps {
		q.terminate(protocolError, why, 0)
		q.mu.Lock()
		q.setIntake(gone)
		q.mu.Unlock()
	}
	for _, cq := range cqs {
		cq.mu.Lock()
		cq.end()
		cq.mu.Unlock()
	}
	return nil
}

var errRNICFailed = errors.New("RNIC Catastrophic Failure")
