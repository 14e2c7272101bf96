package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A row is a program, or a pair of them. In commands {port} is a free port, {host} the
// address, {dir} a scratch folder, and {suite} the folder of the suite.
type row struct {
	name     string
	pkg      string // of Debian
	personas []string
	server   string // empty: the client is alone
	client   string
	port     int       // where the server listens, if it cannot be told
	endless  bool      // the server never ends by itself
	flags    string    // of weft run
	tls      bool      // weft run --tls
	says     []string  // by the client
	hears    []string  // said by the server
	same     [2]string // files that are equal then

	scene func(context.Context, *stage) error // in place of server and client
	needs []string                            // programs, and files as patterns, besides those of server and client
	suite string                              // that the programs are from
	limit time.Duration                       // instead of --limit
}

// missing is what keeps a row from running: nil if nothing does.
func (r *row) missing() error {
	if r.suite != "" && !suiteBuilt(r.suite) {
		return fmt.Errorf("%s is to be built: go run ./programs --suites", r.suite)
	}
	for _, name := range append([]string{program(r.server), program(r.client)}, r.needs...) {
		if !installed(name) {
			return fmt.Errorf("apt-get install %s", r.pkg)
		}
	}
	return nil
}

// installed reports whether there is a program, or a file that matches a pattern.
func installed(name string) bool {
	if name == "" || strings.HasPrefix(name, "{") { // a suite's, or ours
		return true
	}
	if filepath.IsAbs(name) && strings.ContainsAny(name, "*?[") {
		found, _ := filepath.Glob(name)
		return len(found) > 0
	}
	if filepath.IsAbs(name) {
		_, err := os.Stat(name)
		return err == nil
	}
	_, err := exec.LookPath(name)
	return err == nil
}

// program is the name of a command's program, behind the variables that it is given.
func program(command string) string {
	for _, word := range strings.Fields(command) {
		if word != "env" && !strings.Contains(word, "=") {
			return word
		}
	}
	return ""
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
		{name: "ibv_asyncwatch", pkg: utils, personas: both, needs: []string{"ibv_asyncwatch"}, scene: asyncwatch},
		{name: "ibv_rc_pingpong", pkg: utils, personas: rc, server: "ibv_rc_pingpong -g 0 -c -p {port}", client: "ibv_rc_pingpong -g 0 -c -p {port} {host}", says: []string{"1000 iters"}},
		{name: "ibv_rc_pingpong -e", pkg: utils, personas: rc, server: "ibv_rc_pingpong -g 0 -e -p {port}", client: "ibv_rc_pingpong -g 0 -e -p {port} {host}", says: []string{"1000 iters"}},
		{name: "ibv_rc_pingpong -t", pkg: utils, personas: rc, server: "ibv_rc_pingpong -g 0 -t -p {port}", client: "ibv_rc_pingpong -g 0 -t -p {port} {host}", says: []string{"1000 iters", "clock cycles"}},
		{name: "ibv_rc_pingpong -o", pkg: utils, personas: rc, server: "ibv_rc_pingpong -g 0 -o -p {port}", client: "ibv_rc_pingpong -g 0 -o -p {port} {host}", says: []string{"1000 iters"}},
		{name: "ibv_srq_pingpong", pkg: utils, personas: rc, server: "ibv_srq_pingpong -g 0 -p {port}", client: "ibv_srq_pingpong -g 0 -p {port} {host}", says: []string{"1000 iters"}},
		{name: "rping", pkg: cmUtils, personas: both, server: "rping -s -a {host} -p {port} -C 5 -v", client: "rping -c -a {host} -p {port} -C 5 -v", says: []string{"ping data: rdma-ping-4"}, hears: []string{"server ping data: rdma-ping-4"}},
		{name: "rping, 64 KiB, verified", pkg: cmUtils, personas: both, server: "rping -s -a {host} -p {port} -C 200 -S 65535", client: "rping -c -a {host} -p {port} -C 200 -S 65535 -V"},
		{name: "rping -P", pkg: cmUtils, personas: both, server: "rping -s -P -a {host} -p {port} -S 4000", client: "rping -c -a {host} -p {port} -C 20 -S 4000 -V", endless: true},
		{name: "rping -q", pkg: cmUtils, personas: both, server: "rping -s -q -a {host} -p {port} -C 5 -v", client: "rping -c -q -a {host} -p {port} -C 5 -v", says: []string{"ping data: rdma-ping-4"}},
		{name: "rping -q -V, 64 KiB", pkg: cmUtils, personas: both, server: "rping -s -q -a {host} -p {port} -C 100 -S 65535", client: "rping -c -q -a {host} -p {port} -C 100 -S 65535 -V"},
		{name: "rping, IPv6", pkg: cmUtils, personas: both, server: "rping -s -a ::1 -p {port} -C 5 -v", client: "rping -c -a ::1 -p {port} -C 5 -v", says: []string{"ping data: rdma-ping-4"}},
		{name: "ucmatose", pkg: cmUtils, personas: both, server: "ucmatose -p {port}", client: "ucmatose -s {host} -p {port}", says: []string{"return status 0"}, hears: []string{"return status 0"}},
		{name: "ucmatose -m", pkg: cmUtils, personas: both, server: "ucmatose -m -p {port}", client: "ucmatose -m -s {host} -p {port}", says: []string{"return status 0"}},
		{name: "cmtime", pkg: cmUtils, personas: both, server: "cmtime -p {port}", client: "cmtime -s {host} -p {port}", endless: true, says: []string{"destroy"}},
		{name: "rdma_client, rdma_server", pkg: cmUtils, personas: both, server: "rdma_server -p {port}", client: "rdma_client -s {host} -p {port}", says: []string{"rdma_client: end 0"}, hears: []string{"rdma_server: end 0"}},
		{name: "rstream", pkg: cmUtils, personas: both, server: "rstream -p {port}", client: "rstream -p {port} -s {host} -C 100 -S 4096", endless: true, says: []string{"custom"}},
		{name: "rstream, 64 KiB", limit: 20 * time.Second, pkg: cmUtils, personas: both, server: "rstream -p {port} -C 1000 -S 65536", client: "rstream -p {port} -s {host} -C 1000 -S 65536", endless: true, says: []string{"custom"}},
		{name: "riostream", pkg: cmUtils, personas: both, server: "riostream -p {port}", client: "riostream -p {port} -s {host} -C 10 -S 64", endless: true, says: []string{"custom"}},
		{name: "rcopy", pkg: cmUtils, personas: both, server: "rcopy", client: "rcopy {dir}/in {host}:{dir}/out", port: 7427, endless: true, same: [2]string{"in", "out"}},
	},
	rsockets(),
	perftest(),
	qperf(),
	fio(),
	iser(),
	ucx(),
	pyverbs(),
	view(),
	[]row{
		{name: "fi_info", pkg: "libfabric-bin", personas: both, client: "fi_info -p verbs", says: []string{"provider: verbs", "domain: weft0", "FI_EP_MSG", "FI_EP_RDM"}},
		{name: "fi_pingpong, verbs msg", pkg: "libfabric-bin", personas: both, server: "fi_pingpong -p verbs -e msg -I 10 -c -B {port}", client: "fi_pingpong -p verbs -e msg -I 10 -c -P {port} {host}", says: []string{"1m "}},
		{name: "fi_pingpong, verbs;ofi_rxm", pkg: "libfabric-bin", personas: both, server: "fi_pingpong -p verbs;ofi_rxm -e rdm -I 10 -c -B {port}", client: "fi_pingpong -p verbs;ofi_rxm -e rdm -I 10 -c -P {port} {host}", says: []string{"1m "}},
	},
	fabtests(),
	openMPI(),
	valkey(),
	encrypted(),
)

func slicesOf(all ...[]row) (rows []row) {
	for _, r := range all {
		rows = append(rows, r...)
	}
	return rows
}

// asyncwatch waits for what the program says of a device on which nothing happens. It
// never ends.
func asyncwatch(ctx context.Context, s *stage) error {
	p, err := s.start("client", "stdbuf -oL ibv_asyncwatch")
	if err != nil {
		return err
	}
	return p.await(ctx, "weft0: async event FD")
}
