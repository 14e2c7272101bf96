package ddp_test

import (
	"fmt"

	"github.com/weft-rdma/weft/ddp"
)

// A mailbox is a ULP with one buffer for every message and no Tagged Buffers.
type mailbox struct{ buf [64]byte }

func (m *mailbox) AdmitTagged(h *ddp.Tagged, n int) error     { return nil }
func (m *mailbox) AdmitUntagged(h *ddp.Untagged, n int) error { return nil }

func (m *mailbox) PlaceTagged(dst [][]byte, h *ddp.Tagged, n int) ([][]byte, ddp.Fault) {
	return dst, ddp.FaultSTag
}

func (m *mailbox) Buffer(qn, msn uint32) (size uint64, ok bool, err error) {
	return uint64(len(m.buf)), true, nil
}

func (m *mailbox) PlaceUntagged(dst [][]byte, h *ddp.Untagged, n int) ([][]byte, error) {
	return append(dst, m.buf[h.MO:][:n]), nil
}

func (m *mailbox) Unwritable(_ *ddp.Untagged, cause error) error { return cause }

func (m *mailbox) Release() {}
func (m *mailbox) Idle()    {}

func (m *mailbox) DeliverTagged(h *ddp.Tagged, n int) error { return nil }

func (m *mailbox) DeliverUntagged(h *ddp.Untagged, length uint32) error {
	fmt.Printf("message %d on queue %d: %q\n", h.MSN, h.QN, m.buf[:length])
	return nil
}

// One message crosses from a Data Source to a Data Sink. Between them would be
// an LLP such as MPA, which keeps segments apart and says how large one may be.
func Example() {
	const version, mulpdu = 1, 1454
	payload := []byte("hello")
	receiver := ddp.NewReceiver(version, new(mailbox))

	var sequence ddp.Sequence
	var message ddp.Outbound
	message.StartUntagged(version, [5]byte{}, 0, sequence.Next(0), uint32(len(payload)))
	for !message.Done() {
		header, off, n, _ := message.Next(mulpdu, nil)
		segment := append(header, payload[off:int(off)+n]...)
		if err := receiver.ULPDU(segment); err != nil {
			fmt.Println(err)
		}
	}

	// A segment for memory that was never advertised is refused.
	write := ddp.Tagged{Last: true, Version: version, STag: 0x1234, TO: 0x1000}
	fmt.Println(receiver.ULPDU(append(write.Append(nil), "intrusion"...)))
	// Output:
	// message 1 on queue 0: "hello"
	// ddp: tagged buffer error: invalid STag: 9 octets at offset 0x1000 of STag 0x00001234
}
