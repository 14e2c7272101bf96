package mpa_test

import (
	"fmt"
	"io"
	"log"
	"net"

	"github.com/weft-rdma/weft/mpa"
)

// A printer is a Sink that places nothing and prints what it gets.
type printer struct{}

func (printer) ULPDU(u []byte) error {
	fmt.Printf("%s\n", u)
	return nil
}

func (printer) Writing() [][]byte                            { return nil }
func (printer) Begin([]byte, int) (int, bool, error)         { return 0, false, nil }
func (printer) Window(dst [][]byte, _ int) ([][]byte, error) { return dst, nil }
func (printer) Unwritable(cause error) error                 { return cause }
func (printer) Release()                                     {}
func (printer) End() error                                   { return nil }
func (printer) Idle()                                        {}

// Two ULPDUs pass in one write, each in its FPDU. The parameters are those that start-up
// would have negotiated.
func ExampleConn() {
	here, there := net.Pipe()
	terms := mpa.Params{Revision: mpa.Revision1, CRC: true, Initiator: true}

	go func() {
		c := mpa.NewConn(here, terms)
		c.Append([]byte("segment one, "), [][]byte{[]byte("its payload")})
		c.Append([]byte("segment two"), nil)
		if _, err := c.Flush(true); err != nil {
			log.Print(err)
		}
		if err := c.CloseWrite(); err != nil {
			log.Print(err)
		}
	}()

	if err := mpa.NewConn(there, terms).Receive(printer{}); err != io.EOF {
		log.Print(err)
	}
	// Output:
	// segment one, its payload
	// segment two
}
