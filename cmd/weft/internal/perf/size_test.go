package perf

import (
	"slices"
	"testing"
)

func TestSizesAreReadInOctetsAndPowersOf1024(t *testing.T) {
	for in, want := range map[string][]int{
		"64":              {64},
		"64,4K,64KiB,1m":  {64, 4096, 65536, 1 << 20},
		"1 MB, 2 kb,2048": {2048, 1 << 20},
		"1":               {1},
		"256M":            {MaxSize},
	} {
		got, err := ParseSizes(in)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("ParseSizes(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "x", "0", "-1", "4G", "257M", "1,,2", "K", "99999999999999999999", "4kk"} {
		if got, err := ParseSizes(in); err == nil {
			t.Errorf("ParseSizes(%q) = %v, want an error", in, got)
		}
	}
}

func TestSizesPrintInTheLargestUnitThatDividesThem(t *testing.T) {
	for n, want := range map[int]string{1: "1 B", 64: "64 B", 1000: "1000 B", 4096: "4 KiB", 1536: "1536 B", 1 << 20: "1 MiB", 1 << 30: "1 GiB"} {
		if got := SizeString(n); got != want {
			t.Errorf("SizeString(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestOperationsAreReadByName(t *testing.T) {
	got, err := ParseOps("Read, write,read")
	if err != nil || !slices.Equal(got, []Op{Read, Write}) {
		t.Errorf("ParseOps = %v, %v", got, err)
	}
	for _, in := range []string{"", "copy", "read,,write"} {
		if got, err := ParseOps(in); err == nil {
			t.Errorf("ParseOps(%q) = %v, want an error", in, got)
		}
	}
}
