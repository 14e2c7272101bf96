// This file is the value of flags that take a number of bytes.

package main

import "github.com/weft-rdma/weft/cmd/weft/internal/perf"

// A byteSize is a number of bytes, also given with K or M. 0 stands for a default,
// and is shown as nothing.
type byteSize int

func (s *byteSize) String() string {
	if *s == 0 {
		return ""
	}
	return perf.SizeString(int(*s))
}

func (s *byteSize) Set(text string) error {
	n, err := perf.ParseSize(text)
	if err == nil {
		*s = byteSize(n)
	}
	return err
}

func (*byteSize) Type() string { return "bytes" }
