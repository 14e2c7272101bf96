// This file is a connection that leaves octets unread as an accepting Linux siw does.

package nettest

import "net"

// A sluggish connection leaves octets unread for a while.
type sluggish struct {
	end
	times int
	kept  []byte
}

// An end is what a *Conn and a *net.TCPConn have in common.
type end interface {
	net.Conn
	CloseWrite() error
	SetLinger(seconds int) error
}

// Sluggish returns nc with the fault of an accepting Linux siw: what arrives right
// after its first Write, the Reply frame, is not read before more has arrived, that
// many times.
func Sluggish(nc end, times int) net.Conn { return &sluggish{end: nc, times: -times} }

func (s *sluggish) Write(b []byte) (int, error) {
	if s.times < 0 {
		s.times = -s.times
	}
	return s.end.Write(b)
}

func (s *sluggish) Read(b []byte) (int, error) {
	for s.times > 0 {
		var more [512]byte
		n, err := s.end.Read(more[:])
		if err != nil {
			return 0, err
		}
		if len(s.kept) > 0 {
			s.times--
		}
		s.kept = append(s.kept, more[:n]...)
	}
	if len(s.kept) > 0 {
		n := copy(b, s.kept)
		s.kept = s.kept[n:]
		return n, nil
	}
	return s.end.Read(b)
}
