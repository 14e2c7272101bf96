package verbs_test

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// A server gives a client access to a part of its memory for one request, by a window that
// only this client can use, and that the client invalidates with its last message.
//
// Claims: V-10.1.2-2
func ExampleMW() {
	client, server, done := examplePair()
	defer done()
	ok(server.qp.PostRecv(verbs.RecvWR{ID: 1}))
	ok(client.qp.PostRecv(verbs.RecvWR{ID: 2, SGL: []verbs.SGE{client.mr.SGE(0, 12)}}))
	ok(client.qp.PostSend(verbs.SendWR{Op: verbs.OpSend})) // "I have something for you"
	server.completion()

	// The Bind takes effect before the Send behind it, which advertises the window.
	mw, err := server.pd.AllocMW()
	ok(err)
	binding := mw.Binding(server.mr, 40, 16, verbs.RemoteWrite)
	binary.BigEndian.PutUint32(server.buf, uint32(binding.Window))
	binary.BigEndian.PutUint64(server.buf[4:], binding.VA)
	ok(server.qp.PostRecv(verbs.RecvWR{ID: 3}))
	_, err = server.qp.PostSends([]verbs.SendWR{
		{Op: verbs.OpBind, Bind: &binding},
		{Op: verbs.OpSend, SGL: []verbs.SGE{server.mr.SGE(0, 12)}},
	})
	ok(err)

	client.completion()
	lent := verbs.Remote{STag: memory.STag(binary.BigEndian.Uint32(client.buf)), TO: binary.BigEndian.Uint64(client.buf[4:])}
	n := copy(client.buf[32:], "through a window")
	_, err = client.qp.PostSends([]verbs.SendWR{
		{Op: verbs.OpWrite, SGL: []verbs.SGE{client.mr.SGE(32, n)}, Remote: lent},
		{Op: verbs.OpSendInvalidate, Invalidate: lent.STag},
	})
	ok(err)

	wc := server.completion()
	fmt.Printf("%s\n", server.buf[40:56])
	fmt.Println("given back:", wc.HasInvalidated && wc.Invalidated == binding.Window, "bound:", mw.Valid())
	ok(mw.Deallocate())
	// Output:
	// through a window
	// given back: true bound: false
}

// Memory in several pieces is one region: a message is gathered from, or scattered
// over, its pages.
func ExampleBufferList() {
	client, server, done := examplePair()
	defer done()
	pages := memory.Pages(2, 4096)
	list := verbs.BufferList{Buffers: pages, Size: 4096, FBO: 4092, Length: 100}
	mr, err := server.pd.RegisterMR(verbs.MRConfig{List: &list, Access: verbs.LocalWrite, VA: 0x1000 + 4092})
	ok(err)
	ok(server.qp.PostRecv(verbs.RecvWR{ID: 1, SGL: []verbs.SGE{mr.SGE(0, 100)}}))
	n := copy(client.buf, "scattered")
	ok(client.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{client.mr.SGE(0, n)}}))
	server.completion()
	fmt.Printf("%s %s\n", pages[0][4092:], pages[1][:5])
	// Output:
	// scat tered
}

// An STag that is allocated once gets other memory for each message, by a work request
// in the order of the queue. The completion of the Send says that the memory may be
// used again, and the LocalFence makes the invalidation wait for it.
func ExampleMR_FastRegister() {
	client, server, done := examplePairOf(verbs.QPConfig{Privileged: true})
	defer done()
	mr, err := client.pd.AllocMR(1, false)
	ok(err)
	for i, text := range []string{"one", "two"} {
		ok(server.qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{server.mr.SGE(0, 64)}}))
		f := mr.FastRegister([]byte(text), verbs.LocalRead)
		_, err = client.qp.PostSends([]verbs.SendWR{
			{Op: verbs.OpFastRegister, FastRegister: &f},
			{Op: verbs.OpSend, SGL: []verbs.SGE{{STag: f.STag, Length: uint32(len(text))}}},
			{ID: uint64(i), Op: verbs.OpInvalidate, Flags: verbs.Signaled | verbs.LocalFence, Invalidate: f.STag},
		})
		ok(err)
		fmt.Printf("%s, key %d\n", server.buf[:server.completion().Bytes], f.STag.Key())
		client.completion()
	}
	fmt.Println("valid:", mr.Valid())
	// Output:
	// one, key 1
	// two, key 2
	// valid: false
}

// The queue pairs of another protection domain access the same octets with other rights, by
// another STag.
func ExampleMR_RegisterShared() {
	_, server, done := examplePair()
	defer done()
	other, err := server.qp.RNIC().AllocPD()
	ok(err)
	twin, err := server.mr.RegisterShared(other, verbs.SharedConfig{Access: verbs.LocalRead | verbs.RemoteRead, Key: 7})
	ok(err)
	for _, mr := range []*verbs.MR{server.mr, twin} {
		a, err := mr.Query()
		ok(err)
		fmt.Println(a.Shared, mr.Len(), a.Access)
	}
	// Output:
	// true 64 local read+local write+remote read+remote write+remote atomic+bind window
	// true 64 local read+remote read
}

// A region gets other memory and rights; the STag index stays.
func ExampleMR_Reregister() {
	_, server, done := examplePair()
	defer done()
	index := server.mr.STag().Index()
	ok(server.mr.Reregister(server.pd, verbs.MRConfig{Buf: make([]byte, 100), Access: verbs.LocalRead, Key: 1}))
	fmt.Println(server.mr.STag().Index() == index, server.mr.STag().Key(), server.mr.Len())
	// Output:
	// true 1 100
}
