// This file writes the pcapng file, into which all recorded connections go.

package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// errClosed is the error of a Writer that is closed.
var errClosed = errors.New("capture: writer closed")

// A Writer writes one pcapng file, for any number of connections at a time.
//
// If writing fails, the connections continue, nothing more is recorded, and Close returns
// the error.
type Writer struct {
	mu    sync.Mutex
	file  *pcapgo.NgWriter
	frame gopacket.SerializeBuffer // of the packet being written
	err   error                    // first error of the file, or errClosed
	conns uint32                   // counts connections
	out   io.Closer                // the file, if it is the Writer's own
}

// Create creates the named file, for this user alone, and begins a capture in it. A file
// that is there is emptied, and keeps its mode. Close closes the file as well.
func Create(name string) (*Writer, error) {
	out, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	w, err := NewWriter(out)
	if err != nil {
		_ = out.Close() // the first error is the one that matters
		return nil, err
	}
	w.out = out
	return w, nil
}

// NewWriter begins a pcapng file. Output is buffered: the file is complete only after
// Close, which does not close out.
func NewWriter(out io.Writer) (*Writer, error) {
	file, err := pcapgo.NewNgWriterInterface(out,
		pcapgo.NgInterface{
			Name:                "weft",
			Comment:             "headers below MPA are synthetic",
			LinkType:            layers.LinkTypeEthernet,
			TimestampResolution: 9, // 10^-9 s
		},
		pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{
			Hardware:    runtime.GOARCH,
			OS:          runtime.GOOS,
			Application: "weft",
		}})
	if err == nil {
		err = file.Flush()
	}
	if err != nil {
		return nil, fmt.Errorf("capture: begin file: %w", err)
	}
	return &Writer{file: file, frame: gopacket.NewSerializeBuffer()}, nil
}

// Close completes the file and returns the first error of writing it. Connections may
// continue, and are not recorded any more.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
	err := w.err
	w.err = errClosed
	if err == errClosed {
		return err
	}
	if w.out != nil {
		err = errors.Join(err, w.out.Close())
	}
	if err != nil {
		return fmt.Errorf("capture: the file is incomplete: %w", err)
	}
	return nil
}

// flush writes the buffer to the file. It needs w.mu.
func (w *Writer) flush() {
	if w.err == nil {
		w.err = w.file.Flush()
	}
}

// number returns a number for a new connection.
func (w *Writer) number() uint32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns++
	return w.conns
}

// packet appends one packet made of the layers, outermost first.
func (w *Writer) packet(parts ...gopacket.SerializableLayer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return
	}
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if w.err = gopacket.SerializeLayers(w.frame, options, parts...); w.err != nil {
		return
	}
	data := w.frame.Bytes()
	w.err = w.file.WritePacket(gopacket.CaptureInfo{
		Timestamp:     time.Now(), // under the lock, so that times do not go back
		CaptureLength: len(data),
		Length:        len(data),
	}, data)
}
