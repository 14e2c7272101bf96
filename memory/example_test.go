package memory_test

import (
	"fmt"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/memory"
)

func Example() {
	table := memory.NewTable(memory.Config{})
	defer table.Close()
	pd := table.AllocPD()
	buf := make([]byte, 16)
	region, err := table.Register(pd, buf, memory.RegionConfig{
		Access: memory.LocalWrite | memory.RemoteWrite,
		VA:     0x1000,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	stag := uint32(region.STag())

	// A stream of the domain places what came for octets 4 to 8.
	var h memory.Holder
	h.Init(table, pd, 0)
	pieces, fault := h.Resolve(nil, stag, 0x1004, 5, memory.RemoteWrite)
	if fault == ddp.NoFault {
		copy(pieces[0], "hello")
	}
	h.Forget()
	fmt.Printf("%q\n", buf[4:9])

	_, fault = h.Resolve(nil, stag, 0x1004, 13, memory.RemoteWrite)
	fmt.Println(fault)

	// Once this has returned, no octet moves through the STag.
	if err := table.Deallocate(region); err != nil {
		fmt.Println(err)
	}
	_, fault = h.Resolve(nil, stag, 0x1004, 5, memory.RemoteWrite)
	fmt.Println(fault)
	// Output:
	// "hello"
	// base or bounds violation
	// invalid STag
}

func ExampleHolder_Acquire() {
	table := memory.NewTable(memory.Config{})
	defer table.Close()
	pd := table.AllocPD()
	region, err := table.Register(pd, []byte("payload"), memory.RegionConfig{Access: memory.LocalRead})
	if err != nil {
		fmt.Println(err)
		return
	}

	// Frame 7 refers to the memory, and waits for the network.
	var h memory.Holder
	h.Init(table, pd, 0)
	h.SetFrames(7, 7)
	frame, _ := h.Resolve(nil, uint32(region.STag()), 0, 7, memory.LocalRead)
	h.Release()

	if h.Acquire() { // an attempt to write it
		fmt.Printf("%s\n", frame[0])
		h.Release()
	}
	if err := table.Deallocate(region); err != nil {
		fmt.Println(err)
	}
	if !h.Acquire() { // the next attempt
		_, n, _ := h.Revoked()
		fmt.Println("frame", n, "cannot be sent any more")
		h.Forget()
	}
	// Output:
	// payload
	// frame 7 cannot be sent any more
}

func ExampleHolder_Atomic() {
	table := memory.NewTable(memory.Config{})
	defer table.Close()
	pd := table.AllocPD()
	region, err := table.Register(pd, make([]byte, 8), memory.RegionConfig{
		Access: memory.LocalRead | memory.LocalWrite | memory.RemoteAtomic,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var h memory.Holder
	h.Init(table, pd, 0)
	defer h.Forget()
	for range 2 {
		was, misaligned, fault := h.Atomic(uint32(region.STag()), 0, func(v uint64) uint64 { return v + 10 })
		fmt.Println(was, misaligned, fault)
	}
	// Output:
	// 0 false no fault
	// 10 false no fault
}
