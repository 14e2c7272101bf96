package main

import (
	"math"
	"testing"

	"github.com/weft-rdma/weft/nfs"
)

// As GNU's ls -h and df -h: never less than it is.
func TestSizesForPeopleAreRoundedUp(t *testing.T) {
	for n, want := range map[uint64]string{
		0: "0", 1: "1", 1023: "1023", 1024: "1.0K", 1025: "1.1K", 1536: "1.5K",
		10188: "10K", 10138: "10K", 10137: "9.9K", 10240: "10K", 10241: "11K",
		1023 * 1024: "1023K", 1023*1024 + 1: "1.0M", 1<<20 - 1: "1.0M", 1 << 20: "1.0M", 1<<20 + 1: "1.1M",
		1 << 30: "1.0G", 3 << 40: "3.0T", 1<<50 - 1: "1.0P", 1 << 60: "1.0E", math.MaxUint64: "16E",
	} {
		if got := human(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

// What a server says need not add up, and the table is one all the same.
func TestAFileSystemIsTold(t *testing.T) {
	const k = 1024
	for _, tt := range []struct {
		df   *df
		res  nfs.FsstatRes
		want string
	}{
		{&df{}, nfs.FsstatRes{TotalBytes: 100 * k, FreeBytes: 40 * k, AvailBytes: 30 * k}, "100\t60\t30\t67%"},
		{&df{human: true}, nfs.FsstatRes{TotalBytes: 100 * k, FreeBytes: 40 * k, AvailBytes: 30 * k}, "100K\t60K\t30K\t67%"},
		{&df{files: true}, nfs.FsstatRes{TotalFiles: 10, FreeFiles: 10, AvailFiles: 10}, "10\t0\t10\t0%"},
		{&df{}, nfs.FsstatRes{}, "0\t0\t0\t-"},
		{&df{}, nfs.FsstatRes{TotalBytes: 1, FreeBytes: math.MaxUint64}, "1\t0\t0\t-"},
		{&df{}, nfs.FsstatRes{TotalBytes: math.MaxUint64, AvailBytes: math.MaxUint64}, "18014398509481984\t18014398509481984\t18014398509481984\t50%"},
		{&df{}, nfs.FsstatRes{TotalBytes: math.MaxUint64}, "18014398509481984\t18014398509481984\t0\t100%"},
		{&df{}, nfs.FsstatRes{TotalBytes: 1000 * k, FreeBytes: 999 * k, AvailBytes: 999 * k}, "1000\t1\t999\t1%"},
	} {
		if got := tt.df.row(&tt.res); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.res, got, tt.want)
		}
	}
}
