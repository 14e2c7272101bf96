// This file ends a server gracefully, within limits.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-rdma/weft/cmd/weft/internal/fileserver"
)

// drainTime is the default of --drain.
const drainTime = 5 * time.Second

// drain holds the flag of the graceful end.
type drain struct{ limit time.Duration }

func (d *drain) register(f *pflag.FlagSet) {
	f.DurationVar(&d.limit, "drain", drainTime, "after a signal, answer the calls in progress for up to this `DURATION`, then end what is left")
}

// untilInterrupted waits until ctx ends or the server fails, and drains the server.
func (d *drain) untilInterrupted(ctx context.Context, server *fileserver.Server, o *observation, cmd *cobra.Command) (err error) {
	endWithin(ctx, max(d.limit, 0)+endTime)
	select {
	case <-ctx.Done():
	case err = <-server.Failed():
	}
	o.draining()
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.limit)
	defer cancel()
	end := server.Shutdown(limit)
	var cut *fileserver.CutError
	switch {
	case errors.As(end, &cut):
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v after --drain %v\n", cmd.CommandPath(), cut, d.limit)
		return err
	case err == nil && end == nil:
		ended(ctx)
	}
	return errors.Join(err, end)
}
