package capture_test

import (
	"bytes"
	"fmt"
	"net"

	"github.com/gopacket/gopacket/pcapgo"

	"github.com/weft-rdma/weft/capture"
)

func Example() {
	var file bytes.Buffer // an *os.File as a rule
	w, err := capture.NewWriter(&file)
	if err != nil {
		fmt.Println(err)
		return
	}

	here, there := net.Pipe()
	go there.Write([]byte("hello"))
	nc := capture.Conn(here, w)
	nc.Read(make([]byte, 5))
	nc.Close()

	if err := w.Close(); err != nil {
		fmt.Println(err)
		return
	}
	r, err := pcapgo.NewNgReader(&file, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		fmt.Println(err)
		return
	}
	n := 0
	for {
		if _, _, err := r.ReadPacketData(); err != nil {
			break
		}
		n++
	}
	fmt.Println(n, "packets: a handshake of three, one of data, an end of two")
	// Output: 6 packets: a handshake of three, one of data, an end of two
}
