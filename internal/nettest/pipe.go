package nettest

import "github.com/weft-rdma/weft/iwarptest"

// A Conn is one end of a Pipe.
type Conn = iwarptest.Conn

// An Addr names one end of a Pipe.
type Addr = iwarptest.Addr

// DefaultBuffer is how many octets each direction of a Pipe holds.
const DefaultBuffer = iwarptest.DefaultBuffer

// Pipe makes a connection in memory.
func Pipe() (a, b *Conn) { return iwarptest.Pipe() }

// BufferedPipe makes a connection in memory with room for limit octets each way.
func BufferedPipe(limit int) (a, b *Conn) { return iwarptest.BufferedPipe(limit) }

// RandomSizes yields sizes from 1 to most, the same for the same seed.
func RandomSizes(seed uint64, most int) func() int { return iwarptest.RandomSizes(seed, most) }
