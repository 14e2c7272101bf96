package main

import "github.com/weft-rdma/weft/cmd/weft/internal/perf"

// octets is the value of a flag: a number of octets, or one with K or M. It is
// empty when it is 0, which stands for a default.
type octets int

func (o *octets) String() string {
	if *o == 0 {
		return ""
	}
	return perf.SizeString(int(*o))
}

func (o *octets) Set(text string) error {
	n, err := perf.ParseSize(text)
	if err == nil {
		*o = octets(n)
	}
	return err
}

func (*octets) Type() string { return "octets" }
