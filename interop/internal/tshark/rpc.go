// This file reads what tshark says about RPC-over-RDMA and NFS.

package tshark

import (
	"context"
	"fmt"
	"strings"
)

// An RPCReport is what tshark says about RPC-over-RDMA and NFS in a capture.
type RPCReport struct {
	Messages  int            // of RPC-over-RDMA
	Calls     map[string]int // by procedure, as tshark names it
	Excused   int            // frames whose NFS tshark could not follow
	Malformed []string
	Expert    []string
}

// Faults lists everything that must not be.
func (r RPCReport) Faults() []string {
	list := append([]string(nil), r.Malformed...)
	return append(list, r.Expert...)
}

// rpc are the arguments for captures of RPC-over-RDMA.
var rpc = []string{
	"-n", "-o", "tcp.try_heuristic_first:TRUE", "-o", "gui.max_tree_depth:10000", "--disable-heuristic", "smb_direct_iwarp",
}

// rpcHarmless are expert items that are about how NFS is used, or about frames
// that are excused below.
var rpcHarmless = []string{"Malformed Packet (Exception occurred)", "RPC retransmission", "State ID deprecated in CLOSE responses"}

// rpcColumns, in the order in which JudgeRPC asks for them.
var rpcColumns = []string{
	"frame.number", "frame.protocols", "_ws.malformed", "_ws.expert.message", "_ws.col.Info",
	"rpcordma.xid", "rpcordma.msg_type", "rpcordma.writes_count", "rpcordma.reads_count", "rpcordma.reply_count",
}

// JudgeRPC has tshark dissect NFS over RPC-over-RDMA.
//
// A malformed frame is excused in one case: NFS that is not whole because a
// part of it went through a chunk. tshark does not put what RDMA Writes and
// Reads have moved over iWARP back into the message.
func JudgeRPC(ctx context.Context, file string) (RPCReport, error) {
	r := RPCReport{Calls: map[string]int{}}
	args := append([]string{"-r", file, "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=;"}, rpc...)
	for _, name := range rpcColumns {
		args = append(args, "-e", name)
	}
	err := each(ctx, args, func(line string) error {
		column := strings.Split(line, "\t")
		if len(column) != len(rpcColumns) {
			return fmt.Errorf("tshark printed %d columns, expected %d: %q", len(column), len(rpcColumns), line)
		}
		r.take(column)
		return nil
	})
	if err != nil {
		return r, err
	}
	if r.Messages == 0 {
		return r, fmt.Errorf("tshark takes nothing in %s for RPC-over-RDMA", file)
	}
	return r, nil
}

func (r *RPCReport) take(column []string) {
	frame, protocols, malformed, expert, info := column[0], column[1], column[2], column[3], column[4]
	if column[5] != "" {
		r.Messages += strings.Count(column[5], ";") + 1
	}
	chunks := false // in a message of this frame
	for _, count := range column[7:] {
		for text := range strings.SplitSeq(count, ";") {
			chunks = chunks || text != "" && text != "0"
		}
	}
	if malformed != "" {
		if chunks && strings.Contains(protocols, "rpcordma:rpc") {
			r.Excused++
		} else {
			r.Malformed = append(r.Malformed, fmt.Sprintf("frame %s is malformed (%s; %s; %s)", frame, malformed, expert, info))
		}
	}
	for message := range strings.SplitSeq(expert, ";") {
		if message != "" && !isHarmless(message) && !isOneOf(message, rpcHarmless) {
			r.Expert = append(r.Expert, fmt.Sprintf("frame %s: %s", frame, message))
		}
	}
	// "V3 WRITE Call, FH: 0x..": the word before Call.
	words := strings.Fields(info)
	for i, word := range words {
		if i > 0 && strings.HasPrefix(word, "Call") {
			r.Calls[words[i-1]]++
		}
	}
}
