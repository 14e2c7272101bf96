// This file holds the server: its start and end, and the dispatch of calls.
//
// A call takes these steps:
//
//  1. ServeRPC checks program, version and procedure, and finds the identity of the caller
//     (creds.go).
//  2. A call that must not be executed twice goes through the duplicate request cache
//     (replies.go).
//  3. The procedure (inspect.go, data.go, setattr.go, create.go, names.go, listing.go)
//     resolves the handle to a node (tree.go), works on the volume (volume.go) as the
//     caller, syncs the change, and encodes the reply.
//
// Locking: calls hold Server.serving for reading, so that Close can wait for them.
// Server.mu guards the verifier and the time of the last warning, and is held for no longer
// than that. The locks of nodes are described in tree.go.

package folder

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// A Server serves an export over NFS version 3. It is an [oncrpc.Handler] of the program
// [nfs.Program] in version [nfs.V3]. Many goroutines may call it.
type Server struct {
	cfg     Config
	rules   atomic.Pointer[Config] // what Reconfigure changes
	lost    error                  // why the key of handles was not saved, or nil
	vol     volume
	tree    *tree
	replies *replyCache

	end     chan struct{} // closed to end the housekeeping
	keeping sync.WaitGroup

	serving sync.RWMutex // held for reading by calls
	closed  bool         // under serving

	mu     sync.Mutex
	verf   nfs.Verifier // of WRITE and COMMIT
	warned time.Time    // when the log was warned of missing descriptors
}

// New opens the export and returns a Server for it, which the caller closes.
//
// It fails if the export cannot be read, if [Config.StateDir] holds a key that others may
// know, and as root on Linux if the process may not change its identity, unless
// [Config.SingleUser] is set.
func New(c Config) (*Server, error) {
	if err := c.fill(); err != nil {
		return nil, err
	}
	root, err := filepath.Abs(c.Root)
	if err != nil {
		return nil, fmt.Errorf("folder: %w", err)
	}
	c.Root = root
	secret, lost, err := c.secret()
	if err != nil {
		return nil, err
	}
	vol, err := newVolume(&c)
	if err != nil {
		return nil, err
	}
	if err := c.squashable(vol); err != nil {
		vol.close()
		return nil, err
	}
	t, err := newTree(vol, &c, secret)
	if err != nil {
		vol.close()
		return nil, err
	}
	s := &Server{cfg: c, lost: lost, vol: vol, tree: t, replies: newReplyCache(), end: make(chan struct{})}
	s.rules.Store(&s.cfg)
	s.newVerifier()
	s.keeping.Go(s.keepHouse)
	return s, nil
}

// squashable reports why callers cannot be made anonymous as c says, or nil.
func (c *Config) squashable(vol volume) error {
	if c.Squash == SquashAll && !vol.perCaller() {
		return fmt.Errorf("folder: %v: all callers act as the user of this process and cannot be made anonymous; leave out Squash", c.Squash)
	}
	return nil
}

// Reconfigure applies ReadOnly, Squash, SquashFor, AnonUID, AnonGID and Async of c to the
// calls that begin later. The other fields of c are those of New. Handles, open files and
// what is known of calls that are repeated stay.
func (s *Server) Reconfigure(c Config) error {
	if err := c.fill(); err != nil {
		return err
	}
	if err := c.squashable(s.vol); err != nil {
		return err
	}
	s.rules.Store(&c)
	return nil
}

// KeyLost returns why the key of file handles could not be saved, or nil if it was
// ([Config.StateDir]). If it was not, handles are valid for the life of the Server only,
// which its operator should know.
func (s *Server) KeyLost() error { return s.lost }

// Close waits for the calls in progress and frees everything. Later calls get no reply.
// Close does not sync unstable data; the next server's verifier makes clients write those
// again. It returns nil.
func (s *Server) Close() error {
	s.serving.Lock()
	defer s.serving.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.end)
	s.keeping.Wait()
	s.tree.close()
	s.vol.close()
	return nil
}

// keepHouse closes what has not been used for a while.
func (s *Server) keepHouse() {
	tick := time.NewTicker(dataIdle / 2)
	defer tick.Stop()
	for {
		select {
		case <-s.end:
			return
		case now := <-tick.C:
			s.tree.sweep(now)
		}
	}
}

// verifier is the write verifier that WRITE and COMMIT return.
func (s *Server) verifier() nfs.Verifier {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verf
}

// newVerifier changes the write verifier, after unstable data may have been lost
// (RFC 1813 §3.3.7, §3.3.21).
func (s *Server) newVerifier() {
	s.mu.Lock()
	defer s.mu.Unlock()
	rand.Read(s.verf[:])
}

// Handle returns the handle of the directory at a path of names below the export, for
// MOUNT. No names stand for the export itself. Symbolic links are not followed. An error is
// an [nfs.Stat].
func (s *Server) Handle(_ context.Context, names []string) (nfs.FH, error) {
	if !s.beginCall() {
		return nil, nfs.ErrServerFault
	}
	defer s.endCall()
	n, err := s.descend(names)
	if exhausted(err) { // MOUNT has no NFS3ERR_JUKEBOX
		s.tree.relieve()
		n, err = s.descend(names)
	}
	if err != nil {
		return nil, statOf(err)
	}
	defer s.tree.release(n)
	return append(nfs.FH(nil), n.fh[:]...), nil
}

// descend returns the directory at a path of names. The caller releases it.
func (s *Server) descend(names []string) (*node, error) {
	n, err := s.tree.acquire(s.tree.root.key, origin.Share{})
	for _, name := range names {
		if err != nil {
			break
		}
		dir := n
		n, err = s.below(dir, name)
		s.tree.release(dir)
	}
	return n, err
}

// below returns the directory of a name in a directory. The caller releases it.
func (s *Server) below(dir *node, name string) (*node, error) {
	if err := s.checkName(name); err != nil {
		return nil, err
	}
	if isDot(name) {
		return nil, nfs.ErrAcces
	}
	o, st, err := s.vol.lookup(serverCreds, s.tree.object(dir), name)
	if err != nil {
		return nil, err
	}
	if st.Type != nfs.TypeDir {
		o.close()
		return nil, nfs.ErrNotDir
	}
	return s.tree.adopt(o, &st, place{dir.key, name}), nil
}

func (s *Server) beginCall() bool {
	s.serving.RLock()
	if s.closed {
		s.serving.RUnlock()
		return false
	}
	return true
}

func (s *Server) endCall() { s.serving.RUnlock() }

var errClosed = errors.New("folder: the server is closed")

// A call is a call in progress.
type call struct {
	ctx   context.Context
	r     *oncrpc.Request
	share origin.Share // that the call counts against
	creds *creds
}

// decode reads the arguments.
func (q *call) decode(args interface{ Decode(*oncrpc.Decoder) }) error {
	d := oncrpc.NewDecoder(q.r.Args, nfs.Proc(q.r.Proc).String()+" arguments")
	args.Decode(&d)
	return d.Err()
}

// reply encodes the results. More is the length of results, in octets, that MaxResults
// does not include.
func (q *call) reply(res interface{ Encode(*oncrpc.Encoder) }, more int) ([]byte, error) {
	e := q.r.Accept(nfs.Proc(q.r.Proc).MaxResults() + more)
	res.Encode(&e)
	return e.Finish()
}

// procedures are the procedures of version 3. Those with once must not be executed again
// when a call is retransmitted: a second REMOVE would return NFS3ERR_NOENT.
var procedures = [...]struct {
	serve func(*Server, *call) ([]byte, error)
	once  bool
}{
	nfs.ProcNull:        {serve: (*Server).null},
	nfs.ProcGetattr:     {serve: (*Server).getattr},
	nfs.ProcSetattr:     {serve: (*Server).setattr, once: true},
	nfs.ProcLookup:      {serve: (*Server).lookup},
	nfs.ProcAccess:      {serve: (*Server).access},
	nfs.ProcReadlink:    {serve: (*Server).readlink},
	nfs.ProcRead:        {serve: (*Server).read},
	nfs.ProcWrite:       {serve: (*Server).write},
	nfs.ProcCreate:      {serve: (*Server).create, once: true},
	nfs.ProcMkdir:       {serve: (*Server).mkdir, once: true},
	nfs.ProcSymlink:     {serve: (*Server).symlink, once: true},
	nfs.ProcMknod:       {serve: (*Server).mknod, once: true},
	nfs.ProcRemove:      {serve: (*Server).remove, once: true},
	nfs.ProcRmdir:       {serve: (*Server).rmdir, once: true},
	nfs.ProcRename:      {serve: (*Server).rename, once: true},
	nfs.ProcLink:        {serve: (*Server).link, once: true},
	nfs.ProcReaddir:     {serve: (*Server).readdir},
	nfs.ProcReaddirplus: {serve: (*Server).readdirplus},
	nfs.ProcFsstat:      {serve: (*Server).fsstat},
	nfs.ProcFsinfo:      {serve: (*Server).fsinfo},
	nfs.ProcPathconf:    {serve: (*Server).pathconf},
	nfs.ProcCommit:      {serve: (*Server).commit},
}

// ServeRPC executes a call of NFS version 3.
func (s *Server) ServeRPC(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
	switch {
	case r.Prog != nfs.Program:
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProgUnavail}
	case r.Vers != nfs.V3:
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProgMismatch, Low: nfs.V3, High: nfs.V3}
	case int64(r.Proc) >= int64(len(procedures)):
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}
	}
	if !s.beginCall() {
		return nil, errClosed
	}
	defer s.endCall()
	p := procedures[r.Proc]
	q := &call{ctx: ctx, r: r, share: originOf(r).Share()}
	if r.Proc != uint32(nfs.ProcNull) {
		var err error
		if q.creds, err = s.identify(r); err != nil {
			return nil, err
		}
	}
	if p.once {
		return s.replies.do(ctx, r, func() ([]byte, error) { return p.serve(s, q) })
	}
	return p.serve(s, q)
}

// null answers NULL (RFC 1813 §3.3.0).
func (s *Server) null(q *call) ([]byte, error) {
	e := q.r.Accept(0)
	return e.Finish()
}

// fail returns the status for err. It logs errors of the server's side.
func (s *Server) fail(q *call, err error) nfs.Stat {
	stat := statOf(err)
	if exhausted(err) {
		s.tree.relieve()
		s.warnExhausted(err)
	}
	if stat == nfs.ErrIO || stat == nfs.ErrServerFault {
		s.cfg.Logger.Error("NFS procedure failed", "folder", s.cfg.Root, "procedure", nfs.Proc(q.r.Proc).String(), "error", err)
	}
	return stat
}

// warnEvery is the least time between two warnings of missing descriptors.
const warnEvery = 10 * time.Second

func (s *Server) warnExhausted(err error) {
	s.mu.Lock()
	now := time.Now()
	late := now.Sub(s.warned) >= warnEvery
	if late {
		s.warned = now
	}
	s.mu.Unlock()
	if late {
		s.cfg.Logger.Warn("out of file descriptors; clients have to retry", "folder", s.cfg.Root, "error", err)
	}
}
