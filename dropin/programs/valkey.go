package main

import (
	"context"
	"path/filepath"
	"time"
)

// valkey is its server with the module for RDMA, its benchmark, and the client of its own
// runtest-rdma. They want Write with Immediate.
func valkey() []row {
	return []row{
		{name: "valkey-server, valkey-benchmark --rdma", pkg: "valkey (from source)", suite: "valkey", personas: both, scene: valkeyBenchmark, limit: 2 * time.Minute},
		{name: "valkey-server, rdma-test (of runtest-rdma)", pkg: "valkey (from source)", suite: "valkey", personas: both, scene: valkeyTest, limit: 2 * time.Minute},
	}
}

// valkeyServer starts the server. It changes its folder before it loads the module.
func (s *stage) valkeyServer(ctx context.Context) error {
	_, err := s.serve(ctx, "{suite}/src/valkey-server --port 0 --loadmodule {suite}/src/valkey-rdma.so --rdma-bind {host} --rdma-port {port} --appendonly no --loglevel verbose --dir {dir}")
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

// suiteFile is a file of the row's suite.
func (s *stage) suiteFile(name string) string { return filepath.Join(s.suiteDir(s.row.suite), name) }
