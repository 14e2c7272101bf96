package rpcmodel

import (
	"reflect"
	"testing"

	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/rpctcp"
)

// Options of the same name have the same type in both transports, and the same
// default. Only what makes connections differs, and bounds that follow from what
// a connection costs.
func TestBothTransportsNameTheirOptionsAlike(t *testing.T) {
	for _, pair := range [][2]any{
		{rpcrdma.ClientConfig{}, rpctcp.ClientConfig{}},
		{rpcrdma.ServerConfig{}, rpctcp.ServerConfig{}},
	} {
		rdma, tcp := reflect.TypeOf(pair[0]), reflect.TypeOf(pair[1])
		common := 0
		for i := range rdma.NumField() {
			a := rdma.Field(i)
			b, ok := tcp.FieldByName(a.Name)
			if !ok || a.Name == "Dial" {
				continue
			}
			common++
			if a.Type != b.Type {
				t.Errorf("%v.%s is a %v, %v.%s a %v", rdma, a.Name, a.Type, tcp, b.Name, b.Type)
			}
		}
		if common < 6 {
			t.Errorf("%v and %v have %d options in common", rdma, tcp, common)
		}
	}
	for name, both := range map[string][2]any{
		"DefaultClientIdle":  {rpcrdma.DefaultClientIdle, rpctcp.DefaultClientIdle},
		"DefaultDialTimeout": {rpcrdma.DefaultDialTimeout, rpctcp.DefaultDialTimeout},
		"DefaultBackoff":     {rpcrdma.DefaultBackoff, rpctcp.DefaultBackoff},
		"DefaultMaxBackoff":  {rpcrdma.DefaultMaxBackoff, rpctcp.DefaultMaxBackoff},
		"DefaultIdle":        {rpcrdma.DefaultIdle, rpctcp.DefaultIdle},
		"DefaultStall":       {rpcrdma.DefaultStall, rpctcp.DefaultStall},
	} {
		if both[0] != both[1] {
			t.Errorf("%s is %v over RDMA, and %v over TCP", name, both[0], both[1])
		}
	}
}
