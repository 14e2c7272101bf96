// Package tshark asks Wireshark's iWARP dissectors what they make of a
// capture: whether every FPDU is dissected without a malformed frame or a bad
// CRC, and whether the header fields are the ones that were sent.
package tshark

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// Tshark is how to call the program.
const Tshark = "tshark"

// generic are the arguments that every run has. Names are not resolved. The
// heuristic for RPC-over-RDMA takes every short Send for a malformed RPC
// header; a well-known port must not hide MPA; and a segment of many small
// FPDUs, which are dissected one inside the other, needs a deep tree.
var generic = []string{
	"-n", "--disable-heuristic", "rpcrdma_iwarp", "--disable-heuristic", "smb_direct_iwarp",
	"-o", "tcp.try_heuristic_first:TRUE", "-o", "gui.max_tree_depth:10000",
}

// harmless are the expert items that any capture of ours may draw: those that
// are about TCP as a capture shows it, and two by which the dissector, which
// knows RFC 5044 only, greets each start-up frame of RFC 6581.
var harmless = []string{
	"Connection establish request", "Connection establish acknowledge", "Connection finish", "Connection reset",
	"This frame initiates the connection closing", "This frame undergoes the connection closing",
	"ACKed segment that wasn't captured", "TCP window", "window is full", "Zero window", "Window update",
	"keep-alive", "Keep-Alive", "TCP keep", "Duplicate ACK", "retransmission", "out-of-order",
	"Previous segment", "zero window", "Partial Acknowledgement",
	"A new tcp session is started with the same ports", // privileged ports are few, and chosen at random
	"Res field is NOT set to zero as required by RFC 5044",
	"Rev field is NOT set to one as required by RFC 5044",
}

// Fields are the header fields of FPDUs as tshark reports them, one value for
// each FPDU that has the field, in the order of the capture and, within a
// field, of one direction.
type Fields struct {
	Length, Tagged, Last, Opcode, STag, TO, QN, MSN, MO []uint64
}

// A Way is one direction of a connection: "address:port" of its two ends.
type Way struct{ Src, Dst string }

// A Report is what tshark says about one capture.
type Report struct {
	Malformed []string // frames and what is wrong with them
	BadCRC    []string
	Expert    []string // warnings and errors beyond the harmless ones
	GoodCRC   int
	FPDUs     map[Way]*Fields
}

// Faults lists everything that must not be.
func (r Report) Faults() []string {
	var all []string
	for _, list := range [][]string{r.Malformed, r.BadCRC, r.Expert} {
		all = append(all, list...)
	}
	return all
}

// Missing returns an error that says how to get tshark when it is not there.
func Missing() error {
	if _, err := exec.LookPath(Tshark); err != nil {
		return errors.New("tshark is not installed: apt-get install tshark (or your system's package of Wireshark's command line)")
	}
	return nil
}

// Judge runs tshark over the capture in file, and leaves some connections out, of
// which each is named by one of its two ways.
func Judge(ctx context.Context, file string, except ...Way) (Report, error) {
	r := Report{FPDUs: map[Way]*Fields{}}
	args := []string{"-r", file}
	if len(except) > 0 {
		args = append(args, "-Y", without(except))
	}
	if err := r.readFields(ctx, args); err != nil {
		return r, err
	}
	return r, r.readChecks(ctx, args)
}

// without is a display filter that leaves connections out.
func without(connections []Way) string {
	end := func(which, at string) string {
		colon := strings.LastIndexByte(at, ':')
		host, port, ip := at[:colon], at[colon+1:], "ip"
		if strings.HasPrefix(host, "[") {
			host, ip = strings.Trim(host, "[]"), "ipv6"
		}
		return fmt.Sprintf("%s.%s == %s && tcp.%sport == %s", ip, which, host, which, port)
	}
	var filters []string
	for _, w := range connections {
		filters = append(filters, fmt.Sprintf("!((%s && %s) || (%s && %s))",
			end("src", w.Src), end("dst", w.Dst), end("src", w.Dst), end("dst", w.Src)))
	}
	return strings.Join(filters, " && ")
}

// fieldNames, in the order of the columns that readFields asks for.
var fieldNames = []string{
	"frame.number", "ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport", "_ws.malformed", "_ws.expert.message",
	"iwarp_mpa.ulpdulength", "iwarp_ddp.tagged_flag", "iwarp_ddp.last_flag", "iwarp_rdma.opcode",
	"iwarp_ddp.stag", "iwarp_ddp.tagged_offset", "iwarp_ddp.qn", "iwarp_ddp.msn", "iwarp_ddp.mo",
}

func (r *Report) readFields(ctx context.Context, args []string) error {
	args = slices.Concat(args, []string{"-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=;"}, generic)
	for _, name := range fieldNames {
		args = append(args, "-e", name)
	}
	return each(ctx, args, func(line string) error {
		column := strings.Split(line, "\t")
		if len(column) != len(fieldNames) {
			return fmt.Errorf("tshark printed %d columns, expected %d: %q", len(column), len(fieldNames), line)
		}
		if column[7] != "" {
			r.Malformed = append(r.Malformed, fmt.Sprintf("frame %s is malformed (%s %s)", column[0], column[7], column[8]))
		}
		for message := range strings.SplitSeq(column[8], ";") {
			if message != "" && !isHarmless(message) {
				r.Expert = append(r.Expert, fmt.Sprintf("frame %s: %s", column[0], message))
			}
		}
		way := Way{endpoint(column[1:4]), endpoint(column[4:7])}
		f := r.FPDUs[way]
		if f == nil {
			f = &Fields{}
			r.FPDUs[way] = f
		}
		for i, list := range []*[]uint64{&f.Length, &f.Tagged, &f.Last, &f.Opcode, &f.STag, &f.TO, &f.QN, &f.MSN, &f.MO} {
			if err := appendValues(list, column[9+i]); err != nil {
				return fmt.Errorf("frame %s, %s: %w", column[0], fieldNames[9+i], err)
			}
		}
		return nil
	})
}

// endpoint makes "address:port" of the columns for IPv4, IPv6 and port.
func endpoint(column []string) string {
	if column[1] != "" {
		return "[" + column[1] + "]:" + column[2]
	}
	return column[0] + ":" + column[2]
}

func isHarmless(message string) bool { return isOneOf(message, harmless) }

func isOneOf(message string, list []string) bool {
	return slices.ContainsFunc(list, func(known string) bool { return strings.Contains(message, known) })
}

func appendValues(list *[]uint64, column string) error {
	if column == "" {
		return nil
	}
	for text := range strings.SplitSeq(column, ";") {
		value, err := strconv.ParseUint(text, 0, 64)
		if err != nil {
			switch text { // tshark 4.2 and later print booleans as words
			case "True":
				value = 1
			case "False":
				value = 0
			default:
				return err
			}
		}
		*list = append(*list, value)
	}
	return nil
}

// readChecks reads the CRC verdicts, which tshark gives as text only.
func (r *Report) readChecks(ctx context.Context, args []string) error {
	frame := ""
	return each(ctx, slices.Concat(args, []string{"-O", "iwarp_mpa"}, generic), func(line string) error {
		switch {
		case strings.HasPrefix(line, "Frame "):
			frame, _, _ = strings.Cut(line, ":")
		case strings.Contains(line, "(Good CRC32)"):
			r.GoodCRC++
		case strings.Contains(line, "Bad CRC32"):
			r.BadCRC = append(r.BadCRC, frame+": "+strings.TrimSpace(line))
		}
		return nil
	})
}

// each runs tshark and hands over each line that it prints.
func each(ctx context.Context, args []string, take func(line string) error) error {
	cmd := exec.CommandContext(ctx, Tshark, args...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var fault error
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if fault == nil {
			fault = take(lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("tshark: %w: %s", err, bytes.TrimSpace(complaint.Bytes()))
	}
	return errors.Join(fault, lines.Err())
}
