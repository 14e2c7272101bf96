package nfs_test

import (
	"fmt"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// A client encodes the arguments of LOOKUP, and decodes its results.
func ExampleLookupRes() {
	args := nfs.DirOpArgs{Dir: nfs.FH("root"), Name: "README.md"}
	e := oncrpc.NewEncoder(nil)
	args.Encode(&e)
	message, err := e.Finish()
	fmt.Println(len(message), "octets", err)

	d := oncrpc.NewDecoder([]byte{0, 0, 0, 2, 0, 0, 0, 0}, "LOOKUP results")
	var res nfs.LookupRes
	res.Decode(&d)
	fmt.Println(d.End(), res.Stat.Err())
	// Output:
	// 24 octets <nil>
	// <nil> no such file or directory (NFS3ERR_NOENT)
}

// A server fills a listing until the client's count is used up.
func ExampleDirWriter() {
	files := []string{"a", "b", "c"}
	call := &oncrpc.Request{Call: oncrpc.Call{XID: 1}}
	args := nfs.ReaddirArgs{Count: 100}

	listing := nfs.NewReaddir(call.Accept(nfs.ProcReaddir.MaxResults()+100), &nfs.PostOpAttr{}, nfs.Verifier{}, args.Count)
	n := 0
	for n < len(files) && listing.Add(&nfs.Entry{FileID: uint64(n), Name: files[n], Cookie: uint64(n + 1)}) {
		n++
	}
	reply, err := listing.Finish(n == len(files))
	fmt.Println(n, "entries,", len(reply), "octets", err)
	// Output:
	// 2 entries, 104 octets <nil>
}
