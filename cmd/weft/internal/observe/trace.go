// Tracing: what an exporter of spans is told of each call.

package observe

import (
	"context"
)

// A Tracer begins a span for each call. It is an interface of this package's own, so that
// nothing of tracing runs in a command without it.
type Tracer interface {
	begin(ctx context.Context, s *served) (context.Context, func(*served))
}
