package mount_test

import (
	"context"
	"fmt"
	"log"
	"net"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/mount"
)

// A folder may be mounted from a list of networks. A program with a folder.Server uses its
// Handle method.
func Example() {
	private, err := mount.ParseAllow("192.0.2.0/24")
	if err != nil {
		log.Fatal(err)
	}
	allow := mount.Allow{private}
	server, err := mount.New(mount.Export{
		Path: "/srv/data", Allow: allow,
		Handle: func(_ context.Context, names []string) (nfs.FH, error) {
			if len(names) > 0 {
				return nil, nfs.ErrNoEnt
			}
			return nfs.FH("the root's handle"), nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	program := server.Program()
	fmt.Println("program", program.Prog, "versions", program.Low, "to", program.High)
	fmt.Println(allow.Allows(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 7)}), allow.Allows(&net.TCPAddr{IP: net.IPv4(198, 51, 100, 7)}))
	// Output:
	// program 100005 versions 1 to 3
	// true false
}
