package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOnlyMemoryThatIsThereIsRegistered(t *testing.T) {
	anEngine(t, true)
	b := newBed(t)
	page := syscall.Getpagesize()
	pages, err := syscall.Mmap(-1, 0, 4*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	at := addressOf(pages)
	if err := syscall.Mprotect(pages[page:2*page], syscall.PROT_READ); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mprotect(pages[2*page:3*page], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	const localWrite, remoteRead, demand = 1, 4, 1 << 6
	for _, c := range []struct {
		what          string
		first, octets int
		access        uint64
		want          syscall.Errno
	}{
		{"to be written", 0, page, localWrite, 0},
		{"read-only", page, page, remoteRead, 0},
		{"of both kinds", 0, 2 * page, remoteRead, 0},
		{"read-only, to be written", page, page, localWrite, syscall.EFAULT},
		{"of both kinds, to be written", 0, page + 1, localWrite, syscall.EFAULT},
		{"that may not be accessed", 2 * page, 1, 0, syscall.EFAULT},
		{"with a part that may not be", page, page + 1, 0, syscall.EFAULT},
		{"that may not be, on demand", 2 * page, page, demand, 0},
	} {
		a := argument(register)
		assign(&a.pd, uint64(b.pd))
		assign(&a.addr, at+uint64(c.first))
		assign(&a.length, uint64(c.octets))
		assign(&a.access, c.access)
		if got := register(a); got != c.want {
			t.Errorf("memory %s: %v, expected %v", c.what, got, c.want)
			continue
		}
		if c.want == 0 {
			freed := argument(deregister)
			freed.handle = a.handle
			must(t, deregister(freed))
		}
	}
	if err := syscall.Munmap(pages); err != nil {
		t.Fatal(err)
	}
}

// The pages beyond the end of a file are mapped, and not there.
func TestMemoryBeyondTheEndOfAFileIsNotRegistered(t *testing.T) {
	anEngine(t, true)
	b := newBed(t)
	page := syscall.Getpagesize()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(int64(page) + 1); err != nil {
		t.Fatal(err)
	}
	pages, err := syscall.Mmap(int(file.Fd()), 0, 4*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(pages)
	if unix.Madvise(pages[:page], unix.MADV_POPULATE_READ) != nil {
		t.Skip("this Linux cannot look at pages without a fault (it is older than 5.14)")
	}
	const localWrite, demand = 1, 1 << 6
	for _, c := range []struct {
		first, octets int
		access        uint64
		want          syscall.Errno
	}{
		{0, 2 * page, localWrite, 0},
		{0, 2*page + 1, localWrite, syscall.EFAULT},
		{3 * page, 1, 0, syscall.EFAULT},
		{0, 4 * page, localWrite | demand, 0},
	} {
		a := argument(register)
		assign(&a.pd, uint64(b.pd))
		assign(&a.addr, addressOf(pages)+uint64(c.first))
		assign(&a.length, uint64(c.octets))
		assign(&a.access, c.access)
		if got := register(a); got != c.want {
			t.Errorf("%d octets from %d on: %v, expected %v", c.octets, c.first, got, c.want)
		}
	}
}

func TestMappingsCoverMemory(t *testing.T) {
	const maps = `1000-3000 rw-p 00000000 00:00 0 [heap]
3000-4000 r--p 00000000 00:00 0
4000-5000 ---p 00000000 00:00 0
7000-9000 rw-p 00000000 fe:00 1 /a file
`
	for _, c := range []struct {
		from, to      uint64
		read, written bool
	}{
		{0x1000, 0x3000, true, true},
		{0x1001, 0x1002, true, true},
		{0x1fff, 0x3001, true, false},
		{0x1000, 0x4001, false, false},
		{0x5000, 0x5001, false, false},
		{0x0, 0x1001, false, false},
		{0x7000, 0x8000, true, true},
		{0x7fff, 0x8800, true, true},
		{0x7fff, 0x8801, false, false},
		{0x9000, 0x9001, false, false},
	} {
		for _, write := range []bool{false, true} {
			want := map[bool]bool{false: c.read, true: c.written}[write]
			backed := func(octet uint64) bool { return octet < 0x8800 }
			if got := covered(bufio.NewScanner(strings.NewReader(maps)), c.from, c.to, write, backed); got != want {
				t.Errorf("[%#x, %#x), to be written %v: %v, expected %v", c.from, c.to, write, got, want)
			}
		}
	}
}

func TestLinesOfMapsAreRead(t *testing.T) {
	for line, want := range map[string]mapping{
		"7f0a1b2c3000-7f0a1b2c4000 rw-p 00000000 00:00 0 ":                                    {0x7f0a1b2c3000, 0x7f0a1b2c4000, true, true, false},
		"00400000-00452000 r-xp 00001000 08:02 173521                         /usr/bin/dbus":  {0x400000, 0x452000, true, false, true},
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]": {0xffffffffff600000, 0xffffffffff601000, false, false, false},
	} {
		if m, ok := parseMapping([]byte(line)); !ok || m != want {
			t.Errorf("%q: %+v, %v, expected %+v", line, m, ok, want)
		}
	}
	for _, line := range []string{"", "-", "12 rw-p", "12-34", "12-3g rw-p 0 0 0", "G2-34 rw-p 0 0 0", "12- rw-p", "11111111122222222-33 rw-p"} {
		if m, ok := parseMapping([]byte(line)); ok {
			t.Errorf("%q: %+v", line, m)
		}
	}
}
