// This file holds the procedures for data: READ, WRITE and COMMIT.

package folder

import (
	"math"

	"github.com/weft-rdma/weft/nfs"
)

// read answers READ (RFC 1813 §3.3.6). It reads the file into the memory that the
// transport sends from.
func (s *Server) read(q *call) ([]byte, error) {
	var args nfs.ReadArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	n, st, err := s.resolve(q, args.File)
	if err != nil {
		return q.reply(&nfs.ReadRes{Stat: s.fail(q, err)}, 0)
	}
	defer s.tree.release(n)
	f, err := s.readable(q, n, &st)
	if err != nil {
		return q.reply(&nfs.ReadRes{Stat: s.fail(q, err), Attr: postOf(&st)}, 0)
	}

	// Memory for no more than the file had a moment ago.
	count := uint64(min(args.Count, maxData))
	if args.Offset >= st.Size {
		count = 0
	} else {
		count = min(count, st.Size-args.Offset)
	}
	p := nfs.NewReadReply(q.r, int(count))
	got := 0
	if count > 0 {
		got, err = f.readAt(p.Data(int(count)), int64(args.Offset))
	}
	res := nfs.ReadRes{Stat: s.fail(q, err), Attr: s.post(n), Count: uint32(got)}
	size := st.Size
	if res.Attr.Follows {
		size = res.Attr.Attr.Size
	}
	res.EOF = args.Offset >= size || args.Offset+uint64(got) >= size
	return p.Finish(&res)
}

// readable returns the open file of n if the caller may read it. A caller who may
// execute a file may read it, because clients execute a file by reading it.
func (s *Server) readable(q *call, n *node, st *info) (file, error) {
	if st.Type != nfs.TypeReg {
		return nil, nfs.ErrInval
	}
	if err := s.checkRights(q, n, st, mayRead); err != nil {
		if statOf(err) != nfs.ErrAcces || s.checkRights(q, n, st, mayExecute) != nil {
			return nil, err
		}
	}
	return s.tree.file(n, forReading)
}

// changeable returns the open file of n if the caller may write to it.
func (s *Server) changeable(q *call, n *node, st *info) (file, error) {
	if st.Type != nfs.TypeReg {
		return nil, nfs.ErrInval
	}
	if err := s.writable(); err != nil {
		return nil, err
	}
	if err := s.checkRights(q, n, st, mayWrite); err != nil {
		return nil, err
	}
	return s.tree.file(n, forWriting)
}

// write answers WRITE (RFC 1813 §3.3.7).
func (s *Server) write(q *call) ([]byte, error) {
	var args nfs.WriteArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	n, _, err := s.resolve(q, args.File)
	if err != nil {
		return q.reply(&nfs.WriteRes{Stat: s.fail(q, err)}, 0)
	}
	defer s.tree.release(n)
	// The verifier is taken before the data are written. If it changes after that, the
	// data may be among those that were lost.
	res := nfs.WriteRes{Committed: args.Stable, Verf: s.verifier()}
	res.Count, res.Wcc, err = s.writeTo(q, n, &args)
	res.Stat = s.fail(q, err)
	return q.reply(&res, 0)
}

func (s *Server) writeTo(q *call, n *node, args *nfs.WriteArgs) (uint32, nfs.WccData, error) {
	c, err := s.begin(n)
	if err != nil {
		return 0, nfs.WccData{}, err
	}
	f, err := s.changeable(q, n, &c.before)
	written := 0
	switch {
	case err != nil:
	case args.Offset > math.MaxInt64-uint64(len(args.Data)):
		err = nfs.ErrFBig
	default: // a WRITE of no data must not change the times (RFC 1813 §3.3.7), and does not
		written, err = f.writeAt(q.creds, args.Data, int64(args.Offset))
	}
	c.end()
	if err == nil {
		switch args.Stable {
		case nfs.DataSync:
			err = f.datasync()
		case nfs.FileSync:
			err = f.sync()
		}
		if err != nil {
			s.newVerifier()
		}
	}
	return uint32(written), c.wcc, err
}

// commit answers COMMIT (RFC 1813 §3.3.21). It syncs the whole file.
func (s *Server) commit(q *call) ([]byte, error) {
	var args nfs.CommitArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	n, _, err := s.resolve(q, args.File)
	if err != nil {
		return q.reply(&nfs.CommitRes{Stat: s.fail(q, err)}, 0)
	}
	defer s.tree.release(n)
	var res nfs.CommitRes
	c, err := s.begin(n)
	if err == nil {
		_, err = s.changeable(q, n, &c.before)
		c.end()
		res.Wcc = c.wcc
		if err == nil {
			err = s.sync(n)
		}
	}
	res.Stat = s.fail(q, err)
	res.Verf = s.verifier()
	return q.reply(&res, 0)
}
