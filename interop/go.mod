module github.com/weft-rdma/weft/interop

go 1.26.0

require (
	github.com/gopacket/gopacket v1.7.7
	github.com/weft-rdma/weft v0.0.0
)

require (
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/weft-rdma/weft => ../
