// This file is the table that says what the end of a stream does to the queue pair.

package verbs

import (
	"errors"
	"io"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/rdmap"
)

// An ending is what is known of a stream of which nothing moves any more.
type ending struct {
	state State     // of the queue pair
	in    reception // how the reception ended

	lost   bool // the LLP stream had gone before everything was said
	reset  bool // and a reset took it away
	busy   bool // this side closed it with work outstanding
	clean  bool // nothing is outstanding, and nothing was wrong before
	report bool // a failure while terminating is to be reported, see connection.reportLoss
}

// A reception is how the receiving half of a stream ended.
type reception uint8

const (
	endedByFIN       reception = iota // by the peer, between messages
	endedByTerminate                  // by a Terminate message of the peer's
	endedByFault                      // by a fault of the peer's, or by this side
	endedByLLP                        // by an error of the LLP
)

var receptionNames = [...]string{endedByFIN: "FIN", endedByTerminate: "Terminate", endedByFault: "fault", endedByLLP: "LLP"}

func (r reception) String() string { return receptionNames[r] }

// receptionOf is how a reception ended whose error is err.
func receptionOf(err error) reception {
	var t *rdmap.TerminateError
	_, llp := ddp.AsLLPError(err)
	switch {
	case errors.Is(err, io.EOF):
		return endedByFIN
	case llp:
		return endedByLLP
	case errors.As(err, &t) && t.Remote:
		return endedByTerminate
	}
	return endedByFault
}

// outcomes says what the end of a stream does to the queue pair, and which event reports
// it: the first row of the state whose condition holds (Verbs §6.2, §6.6.2). 0 means no
// event.
var outcomes = [...]struct {
	state State
	when  func(*ending) bool
	trigger
	event EventID
}{
	{RTS, func(e *ending) bool { return e.reset }, llpLost, EventLLPReset},
	{RTS, always, llpLost, EventLLPLost},

	{Closing, func(e *ending) bool { return e.in == endedByFIN && !e.lost && e.clean }, llpClosed, EventLLPCloseComplete},
	{Closing, func(e *ending) bool { return e.in == endedByLLP && !e.busy }, llpLost, EventLLPLost},
	{Closing, func(e *ending) bool { return e.in == endedByTerminate }, peerTerminate, EventBadClose},
	{Closing, func(e *ending) bool { return e.in == endedByFault }, protocolError, EventBadClose},
	{Closing, always, llpLost, EventBadClose},

	{Terminate, func(e *ending) bool { return !e.lost }, llpClosed, 0},
	{Terminate, func(e *ending) bool { return e.report }, llpLost, EventBadClose},
	{Terminate, always, llpLost, 0},

	{Error, always, llpLost, 0}, // the consumer aborted it, and no state follows
}

func always(*ending) bool { return true }

// outcome is the row of outcomes for e.
func (e *ending) outcome() (t trigger, event EventID) {
	for i := range outcomes {
		if o := &outcomes[i]; o.state == e.state && o.when(e) {
			return o.trigger, o.event
		}
	}
	return llpLost, 0
}
