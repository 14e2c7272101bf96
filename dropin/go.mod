module github.com/weft-rdma/weft/dropin

go 1.26.0

require (
	github.com/weft-rdma/weft v0.0.0
	golang.org/x/sys v0.49.0
)

require (
	github.com/gopacket/gopacket v1.7.7 // indirect
	golang.org/x/net v0.61.0 // indirect
)

replace github.com/weft-rdma/weft => ../
