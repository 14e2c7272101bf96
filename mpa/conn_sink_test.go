// Sinks for the tests.

package mpa

import (
	"bytes"
	"errors"
)

// A collector keeps copies of the ULPDUs that it is handed.
type collector struct {
	got    [][]byte
	refuse error // what ULPDU returns
	idles  int
}

func (c *collector) ULPDU(u []byte) error {
	c.got = append(c.got, bytes.Clone(u))
	return c.refuse
}
func (c *collector) Writing() [][]byte                    { return nil }
func (c *collector) Begin([]byte, int) (int, bool, error) { return 0, false, nil }
func (c *collector) Window(dst [][]byte, _ int) ([][]byte, error) {
	return dst, errors.New("not asked for")
}
func (c *collector) Unwritable(cause error) error { return cause }
func (c *collector) Release()                     {}
func (c *collector) End() error                   { return errors.New("nothing begun") }
func (c *collector) Idle()                        { c.idles++ }

// A placer has the Conn place the ULPDUs that it is asked about.
type placer struct {
	collector
	skip   int
	place  []byte
	placed int
	held   bool
	gone   error // what Window returns
}

func (p *placer) Begin(head []byte, length int) (int, bool, error) {
	p.place = make([]byte, length)
	copy(p.place, head[:p.skip])
	return p.skip, true, nil
}

func (p *placer) Window(dst [][]byte, off int) ([][]byte, error) {
	if p.gone != nil {
		return dst, p.gone
	}
	if p.held {
		return dst, errors.New("window asked for while one is held")
	}
	p.held = true
	// Two pieces, as memory may have.
	mid := off + (len(p.place)-off)/3
	return append(dst, p.place[off:mid], p.place[mid:]), nil
}

func (p *placer) Release() { p.held = false }

func (p *placer) End() error {
	p.got = append(p.got, p.place)
	p.placed++
	return nil
}

// A placing sink puts the payload of every ULPDU, behind a header of 18
// octets, to the same place, as a protocol above would.
type placing struct {
	place  []byte
	length int // of the ULPDU begun
}

func (p *placing) ULPDU(u []byte) error {
	copy(p.place, u[18:])
	return nil
}

func (p *placing) Writing() [][]byte { return [][]byte{p.place} }

func (p *placing) Begin(head []byte, length int) (int, bool, error) {
	p.length = length
	return 18, true, nil
}

func (p *placing) Window(dst [][]byte, off int) ([][]byte, error) {
	return append(dst, p.place[off-18:p.length-18]), nil
}

func (p *placing) Unwritable(cause error) error { return cause }
func (p *placing) Release()                     {}
func (p *placing) End() error                   { return nil }
func (p *placing) Idle()                        {}

// pattern is n octets that differ from those of another seed.
func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
	return b
}
