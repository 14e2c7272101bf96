// This file handles work requests whose memory the system does not let this program
// use: the pages behind an SGE are not mapped, lack the right, or lie behind the end of
// a file that was truncated. To a stream that is an access violation.

package verbs

// A memoryFault is the failure of such a work request.
type memoryFault struct{ cause error }

func (e memoryFault) Error() string { return e.Unwrap().Error() }
func (e memoryFault) Unwrap() error { return wqError{AccessViolation, e.cause.Error()} }

// Unwritable completes the receive in use.
func (u ulp) Unwritable(cause error) error {
	err := memoryFault{cause}
	u.receiveFailed(err, AccessViolation)
	return err
}

// Damaged has a work request complete in error when the stream has been reset.
func (u ulp) Damaged(ticket uint64, _ error) {
	s := &u.sq
	s.done.Lock()
	defer s.done.Unlock()
	if w := s.at(ticket); !s.closed && !s.failed && w.status == Success {
		w.status = AccessViolation
	}
}
