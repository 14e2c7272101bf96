// This file ends a file server: gracefully as long as the context allows.

package fileserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// A CutError says what Shutdown has ended because it took too long.
type CutError struct {
	Connections, Calls int   // calls in progress, without an answer
	Err                error // of the context
}

func (e *CutError) Error() string {
	return fmt.Sprintf("ended %s with %s in progress", count(e.Connections, "connection"), count(e.Calls, "call"))
}

func (e *CutError) Unwrap() error { return e.Err }

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Shutdown drains the server: it accepts no more connections and calls, answers the calls
// in progress, and closes everything. If the context ends first, Shutdown closes the
// connections that are left at once, and returns a CutError. Call it once.
func (s *Server) Shutdown(ctx context.Context) error {
	// The servers end their connections when limit ends, which is after they were counted.
	limit, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var cut error
	counted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(counted)
		cut = s.inProgress(ctx.Err())
		end()
	})
	err := s.drain(limit)
	if !stop() {
		<-counted
		if cut != nil {
			err = errors.Join(cut, err)
		}
	}
	s.ports.close()
	s.serving.Wait()
	if s.rnic != nil {
		err = errors.Join(err, s.rnic.Close())
		s.rnic = nil
	}
	if s.exports != nil {
		err = errors.Join(err, s.exports.close())
	}
	return err
}

// drain ends the servers of all transports, and the registration.
func (s *Server) drain(limit context.Context) error {
	var ends sync.WaitGroup
	results := make(chan error, 2+len(s.tcp))
	ends.Go(func() { results <- s.unregister(limit) })
	if s.rdma != nil {
		ends.Go(func() { results <- s.rdma.Shutdown(limit) })
	}
	for _, server := range s.tcp {
		ends.Go(func() { results <- server.Shutdown(limit) })
	}
	ends.Wait()
	close(results)
	var errs []error
	for err := range results {
		if !errors.Is(err, context.Canceled) { // a CutError says so
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// inProgress counts what there is to cut; nil is nothing.
func (s *Server) inProgress(why error) error {
	cut := &CutError{Err: why}
	for _, stats := range s.ServerStats() {
		cut.Connections += stats.Connections
		cut.Calls += stats.Calls
	}
	if cut.Connections == 0 {
		return nil
	}
	return cut
}
