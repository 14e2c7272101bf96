package main

import (
	"context"
	"net"
	"path/filepath"
)

// encrypted are programs under weft run --tls. The certificate is for all addresses of the
// machine: those without rdma_cm connect to that of a GID.
func encrypted() (rows []row) {
	for _, p := range []struct {
		program, flags, pkg string
		personas            []string
		says                string
	}{
		{"rping", " -a {host} -C 5 -v", cmUtils, both, "ping data: rdma-ping-4"},
		{"ib_write_bw", " -R -F -n 200", "perftest", both, "#bytes"},
		{"ib_send_lat", " -R -F -n 100", "perftest", both, "#bytes"},
		{"ibv_rc_pingpong", " -g 0 -c", utils, rc, "1000 iters"},
	} {
		server, client := p.program+p.flags+" -p {port}", p.program+p.flags+" -p {port} {host}"
		if p.program == "rping" {
			server, client = p.program+" -s"+p.flags+" -p {port}", p.program+" -c"+p.flags+" -p {port}"
		}
		rows = append(rows, row{
			name: "weft run --tls " + p.program, pkg: p.pkg, personas: p.personas, tls: true, server: server, client: client, says: []string{p.says},
		})
	}
	return rows
}

// certify has weft make a certificate for this machine's addresses, as the user would, and
// returns the flags of weft run that name it.
func (s *stage) certify(ctx context.Context) (flags []string, err error) {
	names := []string{"localhost"}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok {
			names = append(names, n.IP.String())
		}
	}
	dir := filepath.Join(s.dir, "tls")
	// The authority is the row's, too.
	p, err := s.launch("cert", append([]string{"env", "XDG_STATE_HOME=" + s.dir, s.weft, "cert", "--out", dir}, names...))
	if err != nil {
		return nil, err
	}
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	return []string{"--tls-ca", filepath.Join(dir, "ca.pem"), "--tls-cert", filepath.Join(dir, "cert.pem"), "--tls-key", filepath.Join(dir, "key.pem")}, nil
}
