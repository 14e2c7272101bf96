// This file reads start-up frames from a connection: exactly the octets of the
// frame, because what follows belongs to another phase of the stream.

package mpa

import "io"

// readFrame reads one frame of kind want. It gives up at the first octet that
// shows the frame to be invalid, with CodeStartup. When the connection fails
// it returns the connection's error. n counts the octets read.
func readFrame(r io.Reader, want FrameKind) (f Frame, n int, err error) {
	b := make([]byte, frameHeader, maxFrame)
	for n < frameHeader {
		m, err := r.Read(b[n:])
		n += m
		if err := checkKey(b[:min(n, keyLen)], want); err != nil {
			return Frame{}, n, err
		}
		if err != nil && n < frameHeader {
			return Frame{}, n, cutShort(err, n)
		}
	}
	length, err := checkHeader(b, want)
	if err != nil {
		return Frame{}, n, err
	}
	b = b[:frameHeader+length]
	m, err := io.ReadFull(r, b[frameHeader:])
	n += m
	if err != nil {
		return Frame{}, n, cutShort(err, n)
	}
	f, _, err = ParseFrame(b, want)
	return f, n, err
}

// cutShort is err, unless the stream ended after n octets of a frame.
func cutShort(err error, n int) error {
	if err == io.EOF && n > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}
