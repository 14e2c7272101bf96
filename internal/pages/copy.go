// This file copies memory that the system may refuse access to.

package pages

import "github.com/weft-rdma/weft/internal/memcopy"

// Scatter copies src to the pieces of dst, one after the other, and returns the number of
// octets copied. If dst can't be written, err is a *Fault, and n may be too small.
func Scatter(dst [][]byte, src []byte) (n int, err error) {
	defer Catch(&err, dst, Trap())
	for _, d := range dst {
		n += memcopy.Copy(d, src[n:])
	}
	return n, nil
}

// Gather copies src to dst, as far as it fits. If src can't be read, err is a *Fault.
func Gather(dst, src []byte) (n int, err error) {
	defer Catch(&err, [][]byte{src}, Trap())
	return memcopy.Copy(dst, src), nil
}
