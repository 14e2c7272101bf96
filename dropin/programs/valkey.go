package main

import (
	"context"
	"path/filepath"
	"time"
)

// valkey is its server with RDMA built in, its benchmark, its own test of RDMA, and the client of
// that. They want Write with Immediate.
func valkey() []row {
	return []row{
		{name: "valkey-server, valkey-benchmark --rdma", pkg: "valkey (from source)", suite: "valkey", personas: both, scene: valkeyBenchmark, limit: 2 * time.Minute},
		{name: "valkey-server, rdma-test (of runtest-rdma)", pkg: "valkey (from source)", suite: "valkey", personas: both, scene: valkeyTest, limit: 2 * time.Minute},
		{
			name: "valkey's runtest-rdma", pkg: "valkey (from source) make python3-netifaces", suite: "valkey", personas: both, flags: "--view",
			needs: []string{python, "make", "/usr/lib/python3/dist-packages/netifaces*"}, port: 6379, scene: valkeyRuntest, limit: 2 * time.Minute,
		},
	}
}

func (s *stage) valkeyServer(ctx context.Context) error {
	_, err := s.serve(ctx, "{suite}/src/valkey-server --port 0 --rdma-bind {host} --rdma-port {port} --appendonly no --loglevel verbose --dir {dir}")
	return err
}

func valkeyBenchmark(ctx context.Context, s *stage) error {
	if err := s.valkeyServer(ctx); err != nil {
		return err
	}
	return s.client(ctx, "{suite}/src/valkey-benchmark --rdma -h {host} -p {port} -n 20000 -c 10 -q -t ping,set,get,lrange_100",
		"PING_INLINE:", "SET:", "GET:", "LRANGE_100 (first 100 elements):", "requests per second")
}

func valkeyTest(ctx context.Context, s *stage) error {
	if err := s.valkeyServer(ctx); err != nil {
		return err
	}
	return s.client(ctx, "{suite}/tests/rdma/rdma-test --thread 4 -h {host} -p {port}", "Valkey Over RDMA test [OK]")
}

// valkeyRuntest runs the script, which starts both ends by itself, where it may write. It looks
// for a device in /sys, always exits with status 0, and does so without flushing its output.
func valkeyRuntest(ctx context.Context, s *stage) error {
	for _, command := range []string{"cp -r {suite}/. {dir}", "touch {dir}/tests/rdma/rdma-test"} { // it is not to be compiled
		p, err := s.plain("copy", command)
		if err != nil {
			return err
		}
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
	s.env = append(s.env, "PYTHONUNBUFFERED=1")
	return s.client(ctx, "sh ./runtest-rdma", "Valkey Over RDMA test over", "Valkey Over RDMA test [OK]")
}

// suiteFile is a file of the row's suite.
func (s *stage) suiteFile(name string) string { return filepath.Join(s.suiteDir(s.row.suite), name) }
