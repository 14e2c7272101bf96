package folder_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/folder"
	"github.com/weft-rdma/weft/oncrpc"
)

// A transport serves an export with its Server as the Handler, usually among others in an
// oncrpc.Mux. MOUNT hands out the handle of the export itself.
func ExampleServer() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(dir+"/greeting", []byte("Good morning."), 0o644); err != nil {
		log.Fatal(err)
	}

	server, err := folder.New(folder.Config{Root: dir, ReadOnly: true, SingleUser: true})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	programs := oncrpc.Mux{{Prog: nfs.Program, Low: nfs.V3, High: nfs.V3, Handler: server}}

	// What a transport does for a call, here LOOKUP by an anonymous caller.
	root, err := server.Handle(context.Background(), nil)
	if err != nil {
		log.Fatal(err)
	}
	e := oncrpc.NewEncoder(nil)
	args := nfs.DirOpArgs{Dir: root, Name: "greeting"}
	args.Encode(&e)
	call := oncrpc.Call{XID: 1, Prog: nfs.Program, Vers: nfs.V3, Proc: uint32(nfs.ProcLookup)}
	body, err := e.Finish()
	if err != nil {
		log.Fatal(err)
	}
	message, err := call.Append(nil)
	if err != nil {
		log.Fatal(err)
	}
	r := oncrpc.Request{Call: call, Message: append(message, body...), Args: body}
	reply, err := programs.ServeRPC(context.Background(), &r)
	if err != nil {
		log.Fatal(err)
	}

	var header oncrpc.Reply
	at, err := header.Parse(reply)
	if err != nil {
		log.Fatal(err)
	}
	d := oncrpc.NewDecoder(reply[at:], "LOOKUP results")
	var res nfs.LookupRes
	res.Decode(&d)
	fmt.Printf("%s: %d octets\n", res.Stat.String(), res.Attr.Attr.Size)
	// Output: NFS3_OK: 13 octets
}
