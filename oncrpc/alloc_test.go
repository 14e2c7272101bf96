package oncrpc

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"testing"
)

func TestCodecsAllocateNothingInMemoryThatIsLent(t *testing.T) {
	var (
		buf     = make([]byte, 0, 1024)
		wire    = annotated(t, writeCall)
		answer  = annotated(t, replies[1].wire)
		dump    = annotated(t, pmapDump)
		list    = make([]Mapping, 0, 4)
		call    Call
		reply   Reply
		sys     AuthSys
		stream  = bytes.NewReader(unhex(t, "00000003 616263 80000005 6465666768"))
		records = NewRecordReader(stream, RecordLimits{})
		writer  = NewRecordWriter(io.Discard, 0)
		large   = make([]byte, 4096)
		pieces  = net.Buffers{wire, large, wire}
	)
	for name, f := range map[string]func() error{
		"parse a call":        func() error { _, err := call.Parse(wire); return err },
		"append a call":       func() error { _, err := call.Append(buf); return err },
		"parse AUTH_SYS":      func() error { return sys.Parse(call.Cred.Body) },
		"append AUTH_SYS":     func() error { _, err := sys.Append(buf); return err },
		"parse a reply":       func() error { _, err := reply.Parse(answer); return err },
		"append a reply":      func() error { _, err := reply.Append(buf); return err },
		"reply with success":  func() error { r := ReplyTo(7, nil); return r.Err() },
		"parse mappings":      func() error { _, err := ParseMappings(list, dump, 4); return err },
		"read records":        func() error { stream.Seek(0, io.SeekStart); _, err := records.AppendRecord(buf); return err },
		"write records":       func() error { return writer.WriteRecord(pieces...) },
		"read a prefix":       func() error { _, _, err := ParsePrefix(wire); return err },
		"decode fixed opaque": func() error { d := NewDecoder(wire, "x"); d.Fixed(3); d.Count(9, 4); return d.Err() },
	} {
		if name == "parse AUTH_SYS" || name == "append AUTH_SYS" {
			if _, err := call.Parse(wire); err != nil {
				t.Fatal(err)
			}
			if err := sys.Parse(call.Cred.Body); err != nil {
				t.Fatal(err)
			}
		}
		if err := f(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := testing.AllocsPerRun(100, func() { f() }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	wire := annotated(b, writeCall)
	buf := make([]byte, 0, 1024)
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(76)
		var call Call
		for b.Loop() {
			if _, err := call.Parse(wire); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(76)
		var call Call
		call.Parse(wire)
		for b.Loop() {
			if _, err := call.Append(buf); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkReply(b *testing.B) {
	wire := annotated(b, replies[1].wire)
	buf := make([]byte, 0, 1024)
	var reply Reply
	b.SetBytes(int64(len(wire)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := reply.Parse(wire); err != nil {
			b.Fatal(err)
		}
		if _, err := reply.Append(buf); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRecord writes and reads records on a stream in memory: a call alone, and one with
// data in a piece of its own, which is not copied.
func BenchmarkRecord(b *testing.B) {
	for _, n := range []int{128, 64 << 10, 1 << 20} {
		pieces := [][]byte{make([]byte, 128), make([]byte, n-128)}
		b.Run(fmt.Sprintf("write/%d", n), func(b *testing.B) {
			w := NewRecordWriter(io.Discard, 0)
			b.ReportAllocs()
			for b.Loop() {
				if err := w.WriteRecord(pieces...); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("read/%d", n), func(b *testing.B) {
			var wire bytes.Buffer
			if err := NewRecordWriter(&wire, 0).WriteRecord(pieces...); err != nil {
				b.Fatal(err)
			}
			stream := bytes.NewReader(wire.Bytes())
			r := NewRecordReader(stream, RecordLimits{})
			buf := make([]byte, 0, n)
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				stream.Seek(0, io.SeekStart)
				if _, err := r.AppendRecord(buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
