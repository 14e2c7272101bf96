package oncrpc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"reflect"
	"testing"
	"testing/iotest"
)

// FuzzDecoder decodes data by a script of octets that stand for methods and limits. No method
// reads beyond the data, the position advances by words, arrays fit in what is left, and
// what was decoded survives encoding and decoding.
func FuzzDecoder(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3}, []byte("\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01abc\x00"))
	f.Add([]byte{4, 0x45, 6, 7}, []byte("\x00\x00\x00\x03abc\xff\x00\x00\x00\x01d\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x09"))
	f.Add([]byte{0xfc, 6}, []byte("\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, script, data []byte) {
		again := NewEncoder(nil)
		d := NewDecoder(data, "data")
		run := func(d *Decoder, e *Encoder) (seen []any) {
			for _, op := range script {
				limit := uint32(op >> 3)
				if limit == 31 {
					limit = math.MaxUint32
				}
				at := d.Pos()
				left := d.Left()
				var v any
				switch op & 7 {
				case 0:
					n := d.Uint32()
					e.Uint32(n)
					v = n
				case 1:
					n := d.Int64()
					e.Int64(n)
					v = n
				case 2:
					b := d.Bool()
					e.Bool(b)
					v = b
				case 3:
					p := d.Fixed(int(op >> 3))
					e.Fixed(p)
					v = string(p)
				case 4:
					p := d.Opaque(limit)
					e.Opaque(p, limit)
					v = string(p)
				case 5:
					s := d.String(limit)
					e.String(s, limit)
					v = s
				case 6:
					n := d.Count(limit, 8)
					if n < 0 || uint64(n) > uint64(limit) || 8*n > d.Left() {
						t.Fatalf("array of %d elements, limit %d, %d octets are left", n, limit, d.Left())
					}
					e.Count(n, limit)
					v = n
				case 7:
					n := d.Length(limit)
					if n > limit {
						t.Fatalf("length %d, limit %d", n, limit)
					}
					e.Length(int(n&math.MaxInt32), limit)
					v = n &^ (1 << 31)
				}
				if d.Err() != nil {
					return seen
				}
				if d.Pos() < at || d.Pos()%4 != 0 || d.Left() != left-(d.Pos()-at) {
					t.Fatalf("octet %d to %d, %d to %d are left", at, d.Pos(), left, d.Left())
				}
				seen = append(seen, v)
			}
			return seen
		}
		seen := run(&d, &again)
		if d.Pos() > len(data) {
			t.Fatalf("octet %d of %d", d.Pos(), len(data))
		}
		if d.Err() != nil {
			var e *DecodeError
			if !errors.As(d.Err(), &e) || e.Offset != d.Pos() || d.Left() != 0 {
				t.Errorf("error %v at octet %d", d.Err(), d.Pos())
			}
			return
		}
		encoded, err := again.Finish()
		if err != nil || len(encoded) != d.Pos() {
			t.Fatalf("%d octets of %d: %v", len(encoded), d.Pos(), err)
		}
		// Count checks that the elements fit, which the encoded data need not have.
		second := NewDecoder(append(encoded, data[d.Pos():]...), "again")
		var unused Encoder
		if got := run(&second, &unused); second.Err() != nil || !reflect.DeepEqual(got, seen) {
			t.Errorf("got %v, %v\nwant %v", got, second.Err(), seen)
		}
	})
}

// FuzzCall parses a message as a call, and its credential as AUTH_SYS. Calls that parse
// encode to the same octets, up to roundup, and errors have one of the two types.
func FuzzCall(f *testing.F) {
	f.Add(annotated(f, nullCall))
	f.Add(annotated(f, writeCall))
	f.Add(unhex(f, "00000001 00000000 00000003"))
	f.Add(append(unhex(f, "00000001 00000000 00000002 00000003 00000004 00000005 00000006 00000191"), make([]byte, 404)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		var call Call
		args, err := call.Parse(b)
		if err != nil {
			var reject *RejectError
			var decode *DecodeError
			if !errors.As(err, &decode) || decode.Offset > len(b) {
				t.Errorf("got %v", err)
			}
			if errors.As(err, &reject) {
				if call.XID != binary.BigEndian.Uint32(b) {
					t.Errorf("XID %#x", call.XID)
				}
				r := ReplyTo(call.XID, err)
				if _, err := r.Append(nil); err != nil || r.Err() == nil {
					t.Errorf("the reply is %+v: %v", r, err)
				}
			}
			return
		}
		if args < minCallLen || args > len(b) || args != call.Len() {
			t.Fatalf("arguments at octet %d of %d, Len %d", args, len(b), call.Len())
		}
		wire, err := call.Append(nil)
		if err != nil || len(wire) != args {
			t.Fatalf("%d octets of %d: %v", len(wire), args, err)
		}
		var again Call
		if n, err := again.Parse(wire); err != nil || n != args || !reflect.DeepEqual(again, call) {
			t.Errorf("got %+v, %v\nwant %+v", again, err, call)
		}
		fuzzAuthSys(t, call.Cred.Body)
	})
}

func fuzzAuthSys(t *testing.T, body []byte) {
	a := AuthSys{GIDs: make([]uint32, 0, MaxGIDs)}
	if err := a.Parse(body); err != nil {
		if !errors.Is(err, &RejectError{Stat: AuthError, Auth: AuthBadCred}) {
			t.Errorf("got %v", err)
		}
		return
	}
	wire, err := a.Append(nil)
	if err != nil || len(wire) != len(body) || a.Len() != len(body) {
		t.Fatalf("%d octets of %d: %v", len(wire), len(body), err)
	}
	again := AuthSys{GIDs: make([]uint32, 0, MaxGIDs)}
	if err := again.Parse(wire); err != nil || !reflect.DeepEqual(again, a) {
		t.Errorf("got %+v, %v\nwant %+v", again, err, a)
	}
}

// FuzzReply parses a message as a reply. Replies that parse encode to the same octets, up to
// roundup, and their error makes the same reply.
func FuzzReply(f *testing.F) {
	for _, c := range replies {
		f.Add(annotated(f, c.wire))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Reply
		results, err := r.Parse(b)
		if err != nil {
			var decode *DecodeError
			if !errors.As(err, &decode) || decode.Offset > len(b) {
				t.Errorf("got %v", err)
			}
			return
		}
		if results > len(b) || results != r.Len() {
			t.Fatalf("results at octet %d of %d, Len %d", results, len(b), r.Len())
		}
		wire, err := r.Append(nil)
		if err != nil || len(wire) != results {
			t.Fatalf("%d octets of %d: %v", len(wire), results, err)
		}
		var again Reply
		if n, err := again.Parse(wire); err != nil || n != results || !reflect.DeepEqual(again, r) {
			t.Errorf("got %+v, %v\nwant %+v", again, err, r)
		}
		back := ReplyTo(r.XID, r.Err())
		back.Verf = r.Verf
		if r.Stat == MsgDenied && r.Reject == AuthError && r.Auth == AuthOK {
			back.Auth = AuthOK
		}
		if !reflect.DeepEqual(back, r) {
			t.Errorf("its error makes %+v of %+v", back, r)
		}
	})
}

// FuzzRecords reads records from a fuzzed stream, at once and octet by octet, within the
// limits. Records that were read survive writing and reading.
func FuzzRecords(f *testing.F) {
	f.Add(unhex(f, "80000005 6162636465 00000002 6667 80000003 68696a 00000000 80000000"), uint8(0))
	f.Add(unhex(f, "00000001 61 00000001 62 00000001 63 00000001 64 80000001 65"), uint8(1))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint8(3))
	f.Fuzz(func(t *testing.T, stream []byte, maxFragment uint8) {
		limits := RecordLimits{Record: 64, Fragments: 4}
		records, err := readAll(bytes.NewReader(stream), limits)
		slow, slowErr := readAll(iotest.OneByteReader(bytes.NewReader(stream)), limits)
		if !reflect.DeepEqual(slow, records) || (slowErr == nil) != (err == nil) || err.Error() != slowErr.Error() {
			t.Errorf("octet by octet %q, %v\nat once        %q, %v", slow, slowErr, records, err)
		}
		if err != io.EOF && err != io.ErrUnexpectedEOF && !errors.Is(err, ErrRecord) {
			t.Errorf("got %v", err)
		}
		var out bytes.Buffer
		w := NewRecordWriter(&out, int(maxFragment))
		for _, r := range records {
			if len(r) > limits.Record {
				t.Errorf("a record of %d octets", len(r))
			}
			half := len(r) / 2
			if err := w.WriteRecord([]byte(r[:half]), []byte(r[half:])); err != nil {
				t.Error(err)
			}
		}
		limits.Fragments = limits.Record
		if again, err := readAll(&out, limits); err != io.EOF || !reflect.DeepEqual(again, records) {
			t.Errorf("got  %q, %v\nwant %q", again, err, records)
		}
	})
}

// FuzzPortmap parses data as each message of the port mapper. Lists stay within their limit,
// and what parses survives encoding.
func FuzzPortmap(f *testing.F) {
	f.Add(annotated(f, pmapDump))
	f.Add(unhex(f, "00000801"))
	f.Add(unhex(f, "000186a3 00000003 00000000 00000004 61626364"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if list, err := ParseMappings(nil, b, 3); err == nil {
			e := NewEncoder(nil)
			EncodeMappings(&e, list)
			if wire, err := e.Finish(); err != nil || !bytes.Equal(wire, b) || len(list) > 3 {
				t.Errorf("%v, %v", list, err)
			}
		}
		if port, err := ParsePort(b); err == nil && int(binary.BigEndian.Uint32(b)) != int(port) {
			t.Errorf("port %d", port)
		}
		var call CallIt
		d := NewDecoder(b, "CALLIT arguments")
		if call.Decode(&d, 64); d.Err() == nil {
			e := NewEncoder(nil)
			call.Encode(&e, 64)
			if wire, err := e.Finish(); err != nil || len(wire) != d.Pos() {
				t.Errorf("%+v, %v", call, err)
			}
		}
		var result CallItResult
		d = NewDecoder(b, "CALLIT result")
		if result.Decode(&d, 64); d.Err() == nil {
			e := NewEncoder(nil)
			result.Encode(&e, 64)
			if wire, err := e.Finish(); err != nil || len(wire) != d.Pos() {
				t.Errorf("%+v, %v", result, err)
			}
		}
	})
}
