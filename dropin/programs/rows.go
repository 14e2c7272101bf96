package main

import "context"

// A row is a program, or a pair of them. In commands {port} is a free port, {host} the
// address, and {dir} a scratch folder.
type row struct {
	name     string
	pkg      string // of Debian
	personas []string
	server   string // empty: the client is alone
	client   string
	port     int       // where the server listens, if it cannot be told
	endless  bool      // the server never ends by itself
	flags    string    // of weft run
	says     []string  // by the client
	hears    []string  // said by the server
	same     [2]string // files that are equal then

	// run, if not nil, is in place of all that: it returns what is to be said of the row.
	run func(ctx context.Context, b *bench, persona string) (note string, err error)
}

var (
	both = []string{"rnic", "rc"}
	rnic = []string{"rnic"}
	rc   = []string{"rc"}
)

const utils, cmUtils = "ibverbs-utils", "rdmacm-utils"

var rows = slicesOf(
	[]row{
		{name: "ibv_devices", pkg: utils, personas: both, client: "ibv_devices", says: []string{"weft0"}},
		{name: "ibv_devinfo", pkg: utils, personas: both, client: "ibv_devinfo -v", says: []string{"PORT_ACTIVE", "weft0"}},
		{name: "ibv_rc_pingpong", pkg: utils, personas: rc, server: "ibv_rc_pingpong -g 0 -c -p {port}", client: "ibv_rc_pingpong -g 0 -c -p {port} {host}", says: []string{"1000 iters"}},
		{name: "ibv_rc_pingpong -e", pkg: utils, personas: rc, server: "ibv_rc_pingpong -g 0 -e -p {port}", client: "ibv_rc_pingpong -g 0 -e -p {port} {host}", says: []string{"1000 iters"}},
		{name: "ibv_rc_pingpong -t", pkg: utils, personas: rc, server: "ibv_rc_pingpong -g 0 -t -p {port}", client: "ibv_rc_pingpong -g 0 -t -p {port} {host}", says: []string{"1000 iters", "clock cycles"}},
		{name: "ibv_rc_pingpong -o", pkg: utils, personas: rc, server: "ibv_rc_pingpong -g 0 -o -p {port}", client: "ibv_rc_pingpong -g 0 -o -p {port} {host}", says: []string{"1000 iters"}},
		{name: "ibv_srq_pingpong", pkg: utils, personas: rc, server: "ibv_srq_pingpong -g 0 -p {port}", client: "ibv_srq_pingpong -g 0 -p {port} {host}", says: []string{"1000 iters"}},
		{name: "rping", pkg: cmUtils, personas: both, server: "rping -s -a {host} -p {port} -C 5 -v", client: "rping -c -a {host} -p {port} -C 5 -v", says: []string{"ping data: rdma-ping-4"}, hears: []string{"server ping data: rdma-ping-4"}},
		{name: "rping, 64 KiB, verified", pkg: cmUtils, personas: both, server: "rping -s -a {host} -p {port} -C 200 -S 65535", client: "rping -c -a {host} -p {port} -C 200 -S 65535 -V"},
		{name: "rping -P", pkg: cmUtils, personas: both, server: "rping -s -P -a {host} -p {port} -S 4000", client: "rping -c -a {host} -p {port} -C 20 -S 4000 -V", endless: true},
		{name: "rping -q", pkg: cmUtils, personas: both, server: "rping -s -q -a {host} -p {port} -C 5 -v", client: "rping -c -q -a {host} -p {port} -C 5 -v", says: []string{"ping data: rdma-ping-4"}},
		{name: "rping, IPv6", pkg: cmUtils, personas: both, server: "rping -s -a ::1 -p {port} -C 5 -v", client: "rping -c -a ::1 -p {port} -C 5 -v", says: []string{"ping data: rdma-ping-4"}},
		{name: "ucmatose", pkg: cmUtils, personas: both, server: "ucmatose -p {port}", client: "ucmatose -s {host} -p {port}", says: []string{"return status 0"}, hears: []string{"return status 0"}},
		{name: "ucmatose -m", pkg: cmUtils, personas: both, server: "ucmatose -m -p {port}", client: "ucmatose -m -s {host} -p {port}", says: []string{"return status 0"}},
		{name: "cmtime", pkg: cmUtils, personas: both, server: "cmtime -p {port}", client: "cmtime -s {host} -p {port}", endless: true, says: []string{"destroy"}},
		{name: "rdma_client, rdma_server", pkg: cmUtils, personas: both, server: "rdma_server -p {port}", client: "rdma_client -s {host} -p {port}", says: []string{"rdma_client: end 0"}, hears: []string{"rdma_server: end 0"}},
		{name: "rstream", pkg: cmUtils, personas: both, server: "rstream -p {port}", client: "rstream -p {port} -s {host} -C 100 -S 4096", endless: true, says: []string{"custom"}},
		{name: "riostream", pkg: cmUtils, personas: both, server: "riostream -p {port}", client: "riostream -p {port} -s {host} -C 10 -S 64", endless: true, says: []string{"custom"}},
		{name: "rcopy", pkg: cmUtils, personas: both, server: "rcopy", client: "rcopy {dir}/in {host}:{dir}/out", port: 7427, endless: true, same: [2]string{"in", "out"}},
	},
	perftest(),
	qperf(),
	ucx(),
	[]row{pyverbs},
	view(),
	[]row{
		{name: "fi_pingpong, verbs msg", pkg: "libfabric-bin", personas: both, server: "fi_pingpong -p verbs -e msg -I 10 -c -B {port}", client: "fi_pingpong -p verbs -e msg -I 10 -c -P {port} {host}", says: []string{"1m "}},
		{name: "fi_pingpong, verbs;ofi_rxm", pkg: "libfabric-bin", personas: both, server: "fi_pingpong -p verbs;ofi_rxm -e rdm -I 10 -c -B {port}", client: "fi_pingpong -p verbs;ofi_rxm -e rdm -I 10 -c -P {port} {host}", says: []string{"1m "}},
	},
)

func slicesOf(all ...[]row) (rows []row) {
	for _, r := range all {
		rows = append(rows, r...)
	}
	return rows
}

// perftest are the programs of that package, with rdma_cm and without.
func perftest() (rows []row) {
	for _, p := range []struct{ program, flags, weft string }{
		{"ib_write_bw", "-n 200", ""}, {"ib_read_bw", "-n 200", ""}, {"ib_send_bw", "-n 200", ""},
		{"ib_write_bw", "-n 200 -q 4", ""}, {"ib_read_bw", "-n 200 -q 4", ""}, {"ib_send_bw", "-n 200 -b", ""},
		{"ib_read_bw", "-n 1000 -e", ""}, {"ib_send_bw", "-n 1000 -e", ""}, {"ib_write_bw", "-I 64 -s 64 -n 200", ""},
		{"ib_write_bw", "-D 2", ""}, {"ib_read_bw", "-a -n 20", ""},
		{"ib_send_lat", "-n 100 -e --use-srq", ""}, {"ib_send_bw", "-n 200 --use-srq", "--patient"}, {"ib_send_bw", "-n 200 --use-srq -q 4", "--patient"},
		{"ib_write_lat", "-n 20", ""}, {"ib_read_lat", "-n 100", ""}, {"ib_send_lat", "-n 100", ""},
		{"ib_read_lat", "-n 100 -e", ""}, {"ib_send_lat", "-n 100 -e", ""},
		{"ib_atomic_bw", "-n 100", ""}, {"ib_atomic_lat", "-n 100", ""}, {"ib_atomic_bw", "-n 100 -A CMP_AND_SWAP", ""},
	} {
		for _, cm := range []bool{true, false} {
			flags, personas := " -F "+p.flags, rc
			if cm {
				flags, personas = " -R"+flags, both
			}
			rows = append(rows, row{
				name: p.program + flags, pkg: "perftest", personas: personas, flags: p.weft,
				server: p.program + flags + " -p {port}", client: p.program + flags + " -p {port} {host}", says: []string{"#bytes"},
			})
		}
	}
	return rows
}

// qperf are its tests of RC, with rdma_cm and without.
func qperf() (rows []row) {
	for _, test := range []string{"rc_lat", "rc_bw", "rc_bi_bw", "rc_rdma_read_lat", "rc_rdma_read_bw", "rc_rdma_write_lat", "rc_rdma_write_bw", "rc_compare_swap_mr", "rc_fetch_add_mr"} {
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
