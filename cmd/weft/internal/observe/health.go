// Health and readiness.

package observe

import "errors"

var (
	errStarting = errors.New("starting")
	errDraining = errors.New("draining")
)

// Serving makes the command ready: it serves now.
func (o *Observer) Serving() { o.become(nil) }

// Draining ends that: it takes no more calls.
func (o *Observer) Draining() { o.become(errDraining) }

func (o *Observer) become(ready error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ready = ready
}

// Ready returns why the command is not ready, or nil.
func (o *Observer) Ready() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ready
}
