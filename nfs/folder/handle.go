// This file holds file handles, and their authentication (RFC 1813 §2.5, nfs_fh3).

package folder

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/weft-rdma/weft/nfs"
)

// A handle is the octets of a file handle:
//
//	 0  version: 2
//	 1  Config.Mark
//	 4  device, or 0 for that of the root
//	12  inode
//	20  generation: birth time in nanoseconds, or 0
//	28  seal: the first 16 octets of the HMAC-SHA-256 of the octets before
//
// Handles of version 1 are stale, because their seals were not secret.
type handle [handleLen]byte

const (
	handleVersion = 2
	maxMark       = 1<<24 - 1
	handleLen     = 44
	sealAt        = 28

	oldVersion = 1
	oldLen     = 40
)

// A sealer makes handles and recognizes its own. Its key is derived from the secret and
// from the root: handles stay valid when the server restarts, and are not valid in other
// exports with the same secret.
type sealer struct {
	key  []byte
	mark uint32
}

// newSealer returns the sealer of a root. If the file system does not record birth times,
// its id is part of the key, because roots have the same few inode numbers everywhere.
func newSealer(secret []byte, root *info, mark uint32) sealer {
	b := appendKey([]byte("weft folder handle 2"), root.key)
	if root.key.gen == 0 {
		b = binary.BigEndian.AppendUint64(b, root.FSID)
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(b)
	return sealer{mac.Sum(nil), mark}
}

func appendKey(b []byte, k key) []byte {
	b = binary.BigEndian.AppendUint64(b, k.dev)
	b = binary.BigEndian.AppendUint64(b, k.ino)
	return binary.BigEndian.AppendUint64(b, k.gen)
}

// seal returns the handle of k.
func (s sealer) seal(k key) (h handle) {
	appendKey(binary.BigEndian.AppendUint32(h[:0], handleVersion<<24|s.mark), k)
	mac := hmac.New(sha256.New, s.key)
	mac.Write(h[:sealAt])
	copy(h[sealAt:], mac.Sum(nil))
	return h
}

// equal compares in constant time.
func (h *handle) equal(fh nfs.FH) bool { return hmac.Equal(h[:], fh) }

// MarkOf returns the [Config.Mark] in a handle, without a check that it is genuine, which is
// for the Server with that mark. ok is false if the handle cannot be a Server's.
func MarkOf(fh nfs.FH) (mark uint32, ok bool) {
	if len(fh) != handleLen || fh[0] != handleVersion {
		return 0, false
	}
	return binary.BigEndian.Uint32(fh) & maxMark, true
}

// parse returns the key in a handle without checking the seal. A malformed handle is
// NFS3ERR_BADHANDLE, and one with another mark NFS3ERR_STALE: its export may be no more.
func (s sealer) parse(fh nfs.FH) (key, error) {
	if len(fh) == oldLen && fh[0] == oldVersion {
		return key{}, nfs.ErrStale
	}
	switch mark, ok := MarkOf(fh); {
	case !ok:
		return key{}, nfs.ErrBadHandle
	case mark != s.mark:
		return key{}, nfs.ErrStale
	}
	return key{
		dev: binary.BigEndian.Uint64(fh[4:]),
		ino: binary.BigEndian.Uint64(fh[12:]),
		gen: binary.BigEndian.Uint64(fh[20:]),
	}, nil
}
