// This file is about RPC with TLS (RFC 9289) to Linux's client with xprtsec, whose
// handshakes tlshd makes. That needs a newer kernel than siw's guest has: a guest of its
// own (guest/tlsguest).

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/weft-rdma/weft/interop/internal/suite"
)

//go:embed scripts/tlshd.sh
var startTlshd string

// certificates are the files of weft cert in a directory.
type certificates struct{ dir string }

func (c certificates) file(name string) string { return filepath.Join(c.dir, name) }

func (c certificates) flags() []string {
	return []string{"--tls-ca", c.file("ca.pem"), "--tls-cert", c.file("cert.pem"), "--tls-key", c.file("key.pem")}
}

// certify makes certificates for a host, with the authority of this run.
func (h *harness) certify(ctx context.Context, names ...string) (certificates, error) {
	dir := filepath.Join(h.suite.Logs, "certificates", names[0])
	cmd := exec.CommandContext(ctx, h.weft, append([]string{"cert", "--force", "--out", dir}, names...)...)
	cmd.Env = append(os.Environ(), "STATE_DIRECTORY="+filepath.Join(h.suite.Logs, "certificates"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return certificates{}, fmt.Errorf("weft cert: %w: %s", err, out)
	}
	return certificates{dir}, nil
}

// xprtsec runs the cases with Linux's client; the guest is up.
func (h *harness) xprtsec(ctx context.Context) {
	h.suite.Run(ctx, "tls/linux/prepare", func(c *suite.Case) error {
		if _, err := h.script(c, makeTree, guestTree); err != nil {
			return err
		}
		certs, err := h.certify(c, "client.example")
		if err != nil {
			return err
		}
		args := []string{}
		for _, name := range []string{"ca.pem", "cert.pem", "key.pem"} {
			text, err := os.ReadFile(certs.file(name))
			if err != nil {
				return err
			}
			args = append(args, string(text))
		}
		_, err = h.script(c, startTlshd, args...)
		return err
	})
	for _, security := range []string{"tls", "mtls"} {
		h.suite.Run(ctx, "tls/linux/"+security+"/copies", func(c *suite.Case) error { return h.mountedSecurely(c, security, copyTree) })
		h.suite.Run(ctx, "tls/linux/"+security+"/semantics", func(c *suite.Case) error { return h.mountedSecurely(c, security, fileSemantics) })
	}
	h.suite.Run(ctx, "tls/linux/refused", h.refusedInsecure)
	h.suite.Run(ctx, "tls/linux/gateway", h.gatewayWithTLS)
}

// secureMount is the guest's command that mounts this machine's server over TCP.
func (h *harness) secureMount(options string) string {
	return fmt.Sprintf("mkdir -p %[1]s && mount -t nfs -o proto=tcp,port=%[2]d,%[3]s %[4]s:/ %[1]s", guestMount, nfsPort, options, h.guest.Gateway)
}

// serveSecurely starts weft serve with TLS for the guest.
func (h *harness) serveSecurely(c *suite.Case, xprtsec string) (server *hostProgram, dir string, err error) {
	certs, err := h.certify(c, "server.example", h.guest.Gateway)
	if err != nil {
		return nil, "", err
	}
	return h.serve(c, append(certs.flags(), "--xprtsec", xprtsec, "--verbose")...)
}

// mountedSecurely mounts what weft serve has with xprtsec and runs a script there.
func (h *harness) mountedSecurely(c *suite.Case, security, body string) error {
	accepted := map[string]string{"tls": "tls:mtls", "mtls": "mtls"}[security]
	server, dir, err := h.serveSecurely(c, accepted)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	defer server.stop()
	if err := h.onMount(c, h.secureMount("vers=3,nolock,xprtsec="+security), guestMount, body, nfsPort); err != nil {
		return errors.Join(err, server.complaint())
	}
	if err := server.interrupt(); err != nil {
		return err
	}
	if !strings.Contains(server.stderr.String(), "security="+security+" ") {
		return fmt.Errorf("weft serve does not log a connection with security=%s", security)
	}
	return nil
}

// refusedInsecure has Linux try to mount with less security than is accepted.
func (h *harness) refusedInsecure(c *suite.Case) error {
	server, dir, err := h.serveSecurely(c, "mtls")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	defer server.stop()
	for _, security := range []string{"none", "tls"} {
		out, err := h.guest.Run(c, h.secureMount("vers=3,nolock,timeo=50,retrans=1,xprtsec="+security)+" 2>&1 && umount "+guestMount)
		if err == nil {
			return fmt.Errorf("Linux mounts with xprtsec=%s what needs mtls", security)
		}
		if !strings.Contains(out, "access denied") {
			return fmt.Errorf("xprtsec=%s: expected access to be denied, got %s", security, lastLine(out))
		}
	}
	return server.interrupt()
}

// gatewayWithTLS mounts, encrypted over TCP, a gateway before the guest's server on RDMA.
func (h *harness) gatewayWithTLS(c *suite.Case) error {
	if _, err := h.script(c, startKnfsd, guestShare); err != nil {
		return err
	}
	certs, err := h.certify(c, "server.example", h.guest.Gateway)
	if err != nil {
		return err
	}
	p := h.host(c, "weft-gateway", append([]string{h.weft, "gateway", "--listen", fmt.Sprintf("tcp+tls://%s:%d", h.guest.Gateway, nfsPort),
		"--to", fmt.Sprintf("rdma://%s:%d", h.guest.Addr, nfsRDMAPort)}, certs.flags()...)...)
	if err := p.start(); err != nil {
		return err
	}
	defer p.stop()
	defer h.emptyShare(c)
	if err := h.guest.AwaitHostListener(c, nfsPort); err != nil {
		return errors.Join(err, p.complaint())
	}
	if err := h.onMount(c, h.secureMount("vers=4.1,xprtsec=mtls"), guestMount, copyTree, nfsPort); err != nil {
		return errors.Join(err, p.complaint())
	}
	return p.interrupt()
}
