package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

// BenchmarkRegister is the registration of the buffer of one request, and its end.
func BenchmarkRegister(b *testing.B) {
	r, err := verbs.Open(verbs.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	pd, err := r.AllocPD()
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		mr, err := pd.Register(buf, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteWrite)
		if err != nil {
			b.Fatal(err)
		}
		if err := mr.Deallocate(); err != nil {
			b.Fatal(err)
		}
	}
}
