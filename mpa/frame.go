// This file is the codec of the start-up frames, without I/O.

package mpa

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A FrameKind is one of the two start-up frames; on the wire it is the Key.
type FrameKind uint8

const (
	RequestFrame FrameKind = iota // sent by the Initiator
	ReplyFrame                    // sent by the Responder
)

func (k FrameKind) String() string {
	if k == ReplyFrame {
		return "MPA Reply Frame"
	}
	return "MPA Request Frame"
}

// The Key field of each kind (RFC 5044 §7.1.1).
const (
	requestKey = "MPA ID Req Frame"
	replyKey   = "MPA ID Rep Frame"
)

func (k FrameKind) key() string {
	if k == ReplyFrame {
		return replyKey
	}
	return requestKey
}

// Sizes of a start-up frame, in octets.
const (
	keyLen      = 16
	frameHeader = 20 // what precedes the Private Data
	enhancedLen = 4  // RFC 6581 §9: the enhanced data

	// MaxPrivateData limits the Private Data of a frame (RFC 5044 §7.1.1),
	// MaxPrivateDataEnhanced what is left of it for the ULP when the frame
	// carries enhanced data (RFC 6581 §9).
	MaxPrivateData         = 512
	MaxPrivateDataEnhanced = MaxPrivateData - enhancedLen

	maxFrame = frameHeader + MaxPrivateData
)

// Bits of octet 16. flagS counts as a reserved bit below revision 2.
const (
	flagM = 0x80
	flagC = 0x40
	flagR = 0x20
	flagS = 0x10
)

// Bits of the two halves of the enhanced data; what remains is IRD or ORD.
const (
	flagA     = 0x8000 // with IRD
	flagB     = 0x4000
	flagW     = 0x8000 // with ORD; the RFC's C, which is not octet 16's
	flagD     = 0x4000
	depthMask = 0x3FFF
)

// ErrPrivateData reports Private Data longer than a frame can carry:
// MaxPrivateData octets, or MaxPrivateDataEnhanced.
var ErrPrivateData = errors.New("mpa: private data too long")

// A Frame is an MPA Request or Reply Frame (RFC 5044 §7.1.1, RFC 6581 §6, §9).
//
//	    0                   1                   2                   3
//	    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	   +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	 0 |                                                               |
//	   +      Key (16 octets: "MPA ID Req Frame" or "MPA ID Rep Frame") +
//	   |                                                               |
//	   +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	16 |M|C|R|S| Res   |     Rev       |          PD_Length            |
//	   +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	20 |A|B|        IRD                |C|D|        ORD                |  if S
//	   +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	   ~                         Private Data                          ~
//	   +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// PD_Length counts the enhanced data too.
type Frame struct {
	Kind     FrameKind
	Markers  bool // M: the sender requires Markers in what it receives
	CRC      bool // C: the sender wants CRCs
	Reject   bool // R: of a Reply only
	Revision Revision

	Enhanced   bool   // S: the four fields that follow are in the frame
	PeerToPeer bool   // A
	RTR        RTR    // B, C, D; none unless PeerToPeer
	IRD, ORD   uint16 // 14 bits; NotNegotiated in a frame parsed without enhanced data

	PrivateData []byte // the ULP's
}

// AppendFrame appends the frame to dst. The only error is ErrPrivateData; dst
// is then returned as it was.
func AppendFrame(dst []byte, f Frame) ([]byte, error) {
	if err := checkPrivateData(f.PrivateData, f.Enhanced); err != nil {
		return dst, err
	}
	var flags byte // RFC 5044 §7.1.1, RFC 6581 §6: Res is zero when sent
	if f.Markers {
		flags |= flagM
	}
	if f.CRC {
		flags |= flagC
	}
	if f.Reject {
		flags |= flagR
	}
	length := len(f.PrivateData)
	if f.Enhanced {
		flags |= flagS
		length += enhancedLen
	}
	dst = append(dst, f.Kind.key()...)
	dst = append(dst, flags, byte(f.Revision))
	dst = binary.BigEndian.AppendUint16(dst, uint16(length))
	if f.Enhanced {
		dst = f.appendEnhanced(dst)
	}
	return append(dst, f.PrivateData...), nil
}

// appendEnhanced appends the enhanced data.
func (f *Frame) appendEnhanced(dst []byte) []byte {
	ird, ord := f.IRD&depthMask, f.ORD&depthMask
	if f.PeerToPeer { // RFC 6581 §9.2: with A=0 the others are zero
		ird |= flagA
		if f.RTR&RTRSend != 0 {
			ird |= flagB
		}
		if f.RTR&RTRWrite != 0 {
			ord |= flagW
		}
		if f.RTR&RTRRead != 0 {
			ord |= flagD
		}
	}
	dst = binary.BigEndian.AppendUint16(dst, ird)
	return binary.BigEndian.AppendUint16(dst, ord)
}

// ParseFrame reads the frame of kind want at the start of b and says how many
// octets it took. PrivateData refers to b. A frame that is not valid, or not
// whole, gives an *Error with CodeStartup.
func ParseFrame(b []byte, want FrameKind) (f Frame, n int, err error) {
	if err := checkKey(b[:min(len(b), keyLen)], want); err != nil {
		return Frame{}, 0, err
	}
	if len(b) < frameHeader {
		return Frame{}, 0, startupError("%v of %d octets, expected at least %d", want, len(b), frameHeader)
	}
	length, err := checkHeader(b[:frameHeader], want)
	if err != nil {
		return Frame{}, 0, err
	}
	n = frameHeader + length
	if len(b) < n {
		return Frame{}, 0, startupError("%v has %d octets of private data, PD_Length says %d", want, len(b)-frameHeader, length)
	}
	flags := b[keyLen]
	f = Frame{
		Kind:     want,
		Markers:  flags&flagM != 0,
		CRC:      flags&flagC != 0,
		Reject:   want == ReplyFrame && flags&flagR != 0, // not checked in a Request
		Revision: Revision(b[17]),
		IRD:      NotNegotiated,
		ORD:      NotNegotiated,
	}
	private := b[frameHeader:n]
	if f.Enhanced = isEnhanced(b); f.Enhanced {
		f.parseEnhanced(private)
		private = private[enhancedLen:]
	}
	if len(private) > 0 {
		f.PrivateData = private
	}
	return f, n, nil
}

// parseEnhanced reads the enhanced data at the start of b.
func (f *Frame) parseEnhanced(b []byte) {
	ird, ord := binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	f.IRD, f.ORD = ird&depthMask, ord&depthMask
	if ird&flagA == 0 {
		return // RFC 6581 §9.2: the others are ignored
	}
	f.PeerToPeer = true
	if ird&flagB != 0 {
		f.RTR |= RTRSend
	}
	if ord&flagW != 0 {
		f.RTR |= RTRWrite
	}
	if ord&flagD != 0 {
		f.RTR |= RTRRead
	}
}

// checkKey checks the octets of the Key that have arrived.
func checkKey(prefix []byte, want FrameKind) error {
	key := want.key()
	for i, c := range prefix {
		if c == key[i] {
			continue
		}
		other := RequestFrame + ReplyFrame - want
		if c == other.key()[i] {
			// RFC 5044 §7.1.2 rule 8: the keys differ so that two Initiators
			// find out.
			return startupError("got an %v, expected an %v: both sides started in the same role", other, want)
		}
		if looksLikeTLS(prefix) {
			return &Error{Code: CodeStartup, Detail: fmt.Sprintf("expected an %v", want), Err: ErrTLS}
		}
		return startupError("the peer sent %q, expected an %v, which begins with %q", prefix, want, key)
	}
	return nil
}

// ErrTLS: the peer sent the beginning of a TLS record where a start-up frame belongs.
var ErrTLS = errors.New("the peer uses TLS, and this side does not")

// looksLikeTLS reports whether the octets begin a record of TLS: an alert or a handshake
// (RFC 8446 §5.1).
func looksLikeTLS(b []byte) bool {
	return (b[0] == 21 || b[0] == 22) && (len(b) < 2 || b[1] == 3)
}

// checkHeader checks what follows the Key in the first frameHeader octets and
// returns PD_Length.
func checkHeader(b []byte, want FrameKind) (length int, err error) {
	if rev := Revision(b[17]); rev > Revision2 {
		return 0, startupError("%v of %v, expected 0 to 2", want, rev)
	}
	length = int(binary.BigEndian.Uint16(b[18:]))
	if length > MaxPrivateData {
		return 0, startupError("%v with PD_Length %d, expected at most %d", want, length, MaxPrivateData)
	}
	if isEnhanced(b) && length < enhancedLen { // RFC 6581 §6
		return 0, startupError("enhanced %v with PD_Length %d, expected at least %d", want, length, enhancedLen)
	}
	return length, nil
}

// isEnhanced reports whether S is set. Below revision 2 the bit is reserved and
// not looked at (RFC 5044 §7.1.1: Res).
func isEnhanced(header []byte) bool {
	return header[keyLen]&flagS != 0 && Revision(header[17]) >= Revision2
}

func checkPrivateData(p []byte, enhanced bool) error {
	limit := MaxPrivateData
	if enhanced {
		limit = MaxPrivateDataEnhanced
	}
	if len(p) > limit {
		return fmt.Errorf("%w: %d octets, the limit is %d (%d beside enhanced data, %d without)",
			ErrPrivateData, len(p), limit, MaxPrivateDataEnhanced, MaxPrivateData)
	}
	return nil
}

func startupError(format string, args ...any) *Error {
	return errorf(CodeStartup, format, args...)
}
