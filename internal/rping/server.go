// This file is the side that answers pings.

package rping

import (
	"context"
	"errors"
	"fmt"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// A Server answers the pings of one client. Only one goroutine may use it.
type Server struct {
	endpoint
}

// NewServer returns a server that accepts pings of up to size octets, at most MaxSize;
// 0 means MaxSize. Accept a connection on its queue pair, then Serve.
func NewServer(r *verbs.RNIC, size int) (*Server, error) {
	if size == 0 {
		size = MaxSize
	}
	if size < MinSize || size > MaxSize {
		return nil, fmt.Errorf("rping: ping size %d is outside %d to %d", size, MinSize, MaxSize)
	}
	s := new(Server)
	if err := s.open(r, size); err != nil {
		return nil, fmt.Errorf("rping: %w", err)
	}
	return s, nil
}

// QP returns the queue pair to connect.
func (s *Server) QP() *verbs.QP { return s.qp }

// Close frees all resources. Close the connection first: Close aborts it.
func (s *Server) Close() error { return s.close() }

// Serve answers pings until the client closes the connection between two of
// them, which is no error. It calls seen, if not nil, with the data of each
// ping; the slice is valid until seen returns. It returns the number of pings
// that were answered in full.
func (s *Server) Serve(ctx context.Context, seen func(data []byte)) (int, error) {
	for pings := 0; ; pings++ {
		source, err := s.recv(ctx, "the source's advertisement")
		if errors.Is(err, errClosed) {
			return pings, nil
		}
		if err != nil {
			return pings, err
		}
		if err := s.answer(ctx, source, seen); err != nil {
			return pings, err
		}
	}
}

// answer completes a ping, of which the first message has arrived.
func (s *Server) answer(ctx context.Context, source Info, seen func(data []byte)) error {
	if uint64(source.Size) > uint64(len(s.data.octets)) {
		return fmt.Errorf("rping: the client sends pings of %d octets, the limit of this server is %d; start it with a larger -S", source.Size, len(s.data.octets))
	}
	err := s.do(ctx, "reading the source", verbs.SendWR{
		Op:     verbs.OpRead,
		SGL:    []verbs.SGE{s.data.mr.SGE(0, int(source.Size))},
		Remote: source.remote(),
	})
	if err != nil {
		return err
	}
	data := s.data.octets[:source.Size]
	if seen != nil {
		seen(data)
	}
	if err := s.send(ctx, "sending go ahead"); err != nil {
		return err
	}
	sink, err := s.recv(ctx, "the sink's advertisement")
	if err != nil {
		return err
	}
	// The original writes up to the first NUL, included.
	n := min(len(Text(data))+1, len(data))
	if uint64(n) > uint64(sink.Size) {
		return fmt.Errorf("rping: the client's sink has %d octets, its data %d", sink.Size, n)
	}
	err = s.do(ctx, "writing to the sink", verbs.SendWR{
		Op:     verbs.OpWrite,
		SGL:    []verbs.SGE{s.data.mr.SGE(0, n)},
		Remote: sink.remote(),
	})
	if err != nil {
		return err
	}
	return s.send(ctx, "sending done")
}

func (i Info) remote() verbs.Remote {
	return verbs.Remote{STag: memory.STag(i.RKey), TO: i.Buf}
}
