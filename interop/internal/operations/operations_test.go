//go:build !race

// One goroutine uses the memory of both sides here, in an order that only the
// network gives: the race detector does not see it.

package operations_test

import (
	"path/filepath"
	"testing"

	"github.com/weft-rdma/weft/interop/internal/operations"
	"github.com/weft-rdma/weft/interop/internal/verdict"
	"github.com/weft-rdma/weft/interop/internal/wire"
	"github.com/weft-rdma/weft/mpa"
)

// judge reads a capture by our own reading alone and wants nothing wrong in it.
func judge(t *testing.T, path string) verdict.Verdict {
	t.Helper()
	v, err := verdict.Examine(t.Context(), path, verdict.Options{SkipTshark: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Err(); err != nil {
		t.Error(err)
	}
	if len(v.Conversations) != 1 {
		t.Fatalf("the capture has %d connections, expected 1", len(v.Conversations))
	}
	return v
}

func TestEachOperationPassesByBothSides(t *testing.T) {
	for _, o := range operations.All {
		t.Run(o.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "capture.pcapng")
			if err := operations.Record(t.Context(), path, operations.Terms{}, []operations.Operation{o}); err != nil {
				t.Fatal(err)
			}
			if got := judge(t, path).Opcodes()[o.Opcode]; got < 2 {
				t.Errorf("%d messages of %v, expected one by each side", got, o.Opcode)
			}
		})
	}
}

func TestOneSideMayActAlone(t *testing.T) {
	for name, terms := range map[string]operations.Terms{
		"initiator":               {Actors: operations.InitiatorOnly},
		"responder":               {Actors: operations.ResponderOnly},
		"responder, marked":       {Actors: operations.ResponderOnly, Initiator: mpa.Config{Markers: true}},
		"initiator, peer to peer": {Actors: operations.InitiatorOnly, Initiator: mpa.Config{PeerToPeer: true}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "capture.pcapng")
			if err := operations.Record(t.Context(), path, terms, operations.All); err != nil {
				t.Fatal(err)
			}
			judge(t, path)
		})
	}
}

func TestEachMistakeDrawsItsTerminate(t *testing.T) {
	for _, m := range operations.Mistakes {
		t.Run(m.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "capture.pcapng")
			if err := operations.RecordMistake(t.Context(), path, operations.Terms{}, m); err != nil {
				t.Fatal(err)
			}
			if got := judge(t, path).Opcodes()[wire.Terminate]; got != 1 {
				t.Errorf("%d Terminates in the capture, expected 1", got)
			}
		})
	}
}

func TestARejectionIsInTheCapture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "capture.pcapng")
	if err := operations.RecordRejection(t.Context(), path, operations.Terms{}); err != nil {
		t.Fatal(err)
	}
	if reply := judge(t, path).Conversations[0].Reply; reply == nil || !reply.Rejected {
		t.Errorf("the capture shows %+v, expected a rejecting Reply", reply)
	}
}
