package main

import (
	"strings"
	"time"
)

// perftest are the programs of that package, with rdma_cm and without.
func perftest() (rows []row) {
	for _, p := range []struct{ program, flags, weft string }{
		{"ib_write_bw", "-n 200", ""}, {"ib_read_bw", "-n 200", ""}, {"ib_send_bw", "-n 200", ""},
		{"ib_write_bw", "-n 200 -q 4", ""}, {"ib_read_bw", "-n 200 -q 4", ""}, {"ib_send_bw", "-n 200 -b", ""},
		{"ib_read_bw", "-n 1000 -e", ""}, {"ib_send_bw", "-n 1000 -e", ""}, {"ib_write_bw", "-I 64 -s 64 -n 200", ""},
		{"ib_write_bw", "-D 2", ""}, {"ib_read_bw", "-D 2", ""}, {"ib_send_bw", "-D 2", ""},
		{"ib_write_bw", "-a -n 20", ""}, {"ib_read_bw", "-a -n 20", ""}, {"ib_send_bw", "-a -n 20", ""}, {"ib_send_bw", "-n 200 -q 4", ""},
		{"ib_send_lat", "-n 100 -e --use-srq", ""}, {"ib_send_bw", "-n 200 --use-srq", "--patient"}, {"ib_send_bw", "-n 200 --use-srq -q 4", "--patient"},
		{"ib_write_lat", "-n 20", ""}, {"ib_read_lat", "-n 100", ""}, {"ib_send_lat", "-n 100", ""},
		{"ib_read_lat", "-n 100 -e", ""}, {"ib_send_lat", "-n 100 -e", ""}, {"ib_send_lat", "-D 2", ""}, {"ib_read_lat", "-D 2", ""},
		{"ib_atomic_bw", "-n 100", ""}, {"ib_atomic_lat", "-n 100", ""}, {"ib_atomic_bw", "-n 100 -A CMP_AND_SWAP", ""}, {"ib_atomic_lat", "-n 100 -A CMP_AND_SWAP", ""},
		{"ib_atomic_bw", "-n 100 -q 4", ""}, {"ib_atomic_bw", "-D 2", ""}, {"ib_atomic_lat", "-n 100 -e", ""},
	} {
		for _, cm := range []bool{true, false} {
			flags, personas := " -F "+p.flags, rc
			if cm {
				flags, personas = " -R"+flags, both
			}
			// All sizes take long on a busy machine: both ends poll, and yield the processor when they find nothing.
			var limit time.Duration
			if strings.HasPrefix(p.flags, "-a") {
				limit = 4 * time.Minute
			}
			rows = append(rows, row{
				name: p.program + flags, pkg: "perftest", personas: personas, flags: p.weft, limit: limit,
				server: p.program + flags + " -p {port}", client: p.program + flags + " -p {port} {host}", says: []string{"#bytes"},
			})
		}
	}
	for _, cm := range []bool{true, false} { // Debian 12's version has no such option
		flags, personas := " -F -n 200 --write_with_imm", rc
		if cm {
			flags, personas = " -R"+flags, both
		}
		const program = "{suite}/bin/ib_write_bw"
		rows = append(rows, row{
			name: "ib_write_bw" + flags, pkg: "perftest (from source)", suite: "perftest", personas: personas,
			server: program + flags + " -p {port}", client: program + flags + " -p {port} {host}", says: []string{"#bytes"},
		})
	}
	return rows
}

// qperf are its tests of RC, with rdma_cm and without.
func qperf() (rows []row) {
	for _, test := range []string{"rc_lat", "rc_bw", "rc_bi_bw", "rc_rdma_read_lat", "rc_rdma_read_bw", "rc_rdma_write_lat", "rc_rdma_write_bw", "rc_rdma_write_poll_lat", "rc_compare_swap_mr", "rc_fetch_add_mr", "ver_rc_compare_swap", "ver_rc_fetch_add"} {
		for _, cm := range []bool{true, false} {
			flags, personas := "", rc
			if cm {
				flags, personas = "-cm1 ", both
			}
			rows = append(rows, row{
				name: "qperf " + flags + test, pkg: "qperf", personas: personas, endless: true,
				server: "qperf -lp {port}", client: "qperf -lp {port} {host} " + flags + "-t 1 " + test, says: []string{test + ":", "="},
			})
		}
	}
	return rows
}
