// This file runs cases with the Linux NFS server: as the peer of the client, and behind
// the gateway.

package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weft-rdma/weft/interop/internal/suite"
)

// startKnfsd starts the guest's server.
func (h *harness) startKnfsd(c *suite.Case) error {
	_, err := h.script(c, startKnfsd, guestShare)
	return err
}

// url names a path below the export of the guest's server.
func (h *harness) url(path string) string { return "nfs://" + h.guest.Addr + guestShare + path }

// weftDoes runs `weft` with the arguments and returns what it prints.
func (h *harness) weftDoes(c *suite.Case, args ...string) (string, error) {
	p := h.host(c, "weft-"+args[0], append([]string{h.weft}, args...)...)
	err := p.run()
	return p.stdout.String(), err
}

// clientCopies copies a tree to and from the guest's server, and looks at it
// from both sides.
func (h *harness) clientCopies(c *suite.Case) error {
	dir, err := os.MkdirTemp("", "weft-copied-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	src := filepath.Join(dir, "src")
	if err := writeTree(src); err != nil {
		return err
	}
	if _, err := h.weftDoes(c, "cp", "-r", "--verify", src, h.url("/")); err != nil {
		return err
	}
	// What Linux sees.
	sums, err := h.guest.Run(c, "cd "+guestShare+"/src && find . -type f | LC_ALL=C sort | xargs md5sum")
	if err != nil {
		return err
	}
	own, err := h.guest.Host(c, "sh", "-c", "cd "+quote(src)+" && find . -type f | LC_ALL=C sort | xargs md5sum").Output()
	if err != nil {
		return err
	}
	if sums != string(own) || strings.Count(sums, "\n") != 201 {
		return errors.New("the guest's sums are not those of the files that were copied")
	}
	if _, err := h.weftDoes(c, "cp", "-r", "--verify", h.url("/src"), filepath.Join(dir, "back")); err != nil {
		return err
	}
	if out, err := h.guest.Host(c, "diff", "-r", src, filepath.Join(dir, "back")).CombinedOutput(); err != nil {
		return fmt.Errorf("the copy of the copy differs: %s", out)
	}
	if err := h.lists(c, "/src", 11); err != nil {
		return err
	}
	// A directory that Linux filled.
	if _, err := h.guest.Run(c, "mkdir -p "+guestShare+"/many && cd "+guestShare+"/many && seq -f 'entry-%05g' 5000 | xargs touch"); err != nil {
		return err
	}
	if err := h.lists(c, "/many", 5000); err != nil {
		return err
	}
	printed, err := h.weftDoes(c, "cat", h.url("/src/big"))
	if err != nil {
		return err
	}
	big, err := os.ReadFile(filepath.Join(src, "big"))
	if err != nil {
		return err
	}
	if !bytes.Equal([]byte(printed), big) {
		return fmt.Errorf("weft cat printed %d octets that are not the file's %d", len(printed), len(big))
	}
	return nil
}

// lists lists a directory of the guest, which has so many entries.
func (h *harness) lists(c *suite.Case, path string, entries int) error {
	listed, err := h.weftDoes(c, "ls", h.url(path))
	if err != nil {
		return err
	}
	if got := len(strings.Fields(listed)); got != entries {
		return fmt.Errorf("weft ls %s shows %d entries, expected %d: %.200q", path, got, entries, listed)
	}
	return nil
}

// writeTree makes 200 files and one of 64 MiB.
func writeTree(dir string) error {
	write := func(name string, size int) error {
		octets := make([]byte, size)
		rand.Read(octets)
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		return os.WriteFile(name, octets, 0o644)
	}
	for d := range 10 {
		for f := range 20 {
			if err := write(fmt.Sprintf("dir%d/file%d", d, f), d*f*1371+f); err != nil {
				return err
			}
		}
	}
	return write("big", 64<<20)
}

// clientCaptured records what passes between Weft's client and Linux's server.
func (h *harness) clientCaptured(c *suite.Case) error {
	dir, err := os.MkdirTemp("", "weft-copied-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "odd")
	// One WRITE and one READ: tshark mixes up chunks that are read at one time.
	octets := make([]byte, 100001)
	rand.Read(octets)
	if err := os.WriteFile(file, octets, 0o644); err != nil {
		return err
	}
	if _, err := h.weftDoes(c, "cp", "--pcap", c.File("capture.pcapng"), "--verify", file, h.url("/odd")); err != nil {
		return err
	}
	return judgeRPC(c, "LOOKUP", "CREATE", "WRITE", "READ")
}

// gateway starts `weft gateway` before the guest's own server and returns the
// guest's command to mount through it.
func (h *harness) gateway(c *suite.Case, version string, args ...string) (*hostProgram, string, error) {
	p := h.host(c, "weft-gateway", append([]string{h.weft, "gateway", "--listen", fmt.Sprintf("rdma://%s:%d", h.guest.Gateway, nfsRDMAPort),
		"--to", fmt.Sprintf("tcp://%s:%d", h.guest.Addr, nfsPort)}, args...)...)
	if err := p.start(); err != nil {
		return nil, "", err
	}
	if err := h.guest.AwaitHostListener(c, nfsRDMAPort); err != nil {
		return nil, "", errors.Join(err, p.complaint())
	}
	dir := guestShare
	if version != "3" {
		dir = "/" // the export has fsid=0: it is the root of version 4
	}
	return p, mountCommand(h.guest.Gateway, dir, version, guestMount), nil
}

func (h *harness) gatewayTo(c *suite.Case, version, body string) error {
	gateway, mount, err := h.gateway(c, version)
	if err != nil {
		return err
	}
	defer gateway.stop()
	defer h.emptyShare(c)
	if err := h.onMount(c, mount, guestMount, body, nfsRDMAPort); err != nil {
		return errors.Join(err, gateway.complaint())
	}
	return gateway.interrupt()
}

func (h *harness) emptyShare(c *suite.Case) {
	h.guest.Run(context.WithoutCancel(c), "rm -rf "+guestShare+"/*")
}

// gatewaySurvives restarts the server behind the gateway, and the gateway
// itself, while a file is written through it.
func (h *harness) gatewaySurvives(c *suite.Case, version string) error {
	gateway, mount, err := h.gateway(c, version)
	if err != nil {
		return err
	}
	defer func() { gateway.stop() }()
	defer h.emptyShare(c)
	writer, unmount, err := h.startWriter(c, mount, 110*time.Second, fmt.Sprintf(
		"echo begun; for i in $(seq 6); do cat %[2]s/big >%[1]s/copy$i && sync -f %[1]s && cmp %[2]s/big %[1]s/copy$i || exit 1; rm %[1]s/copy$i; done", guestMount, guestTree))
	if err != nil {
		return errors.Join(err, gateway.complaint())
	}
	defer unmount()
	// The server goes and comes: first behind the gateway, then the gateway.
	if _, err := h.guest.Run(c, "sleep 1; rpc.nfsd 0; rpc.nfsd -G 10 -L 10 8; grep -q '^rdma 20049' /proc/fs/nfsd/portlist || echo 'rdma 20049' >/proc/fs/nfsd/portlist"); err != nil {
		return fmt.Errorf("restarting the guest's server: %w", err)
	}
	gateway.stop()
	if gateway, _, err = h.gateway(c, version); err != nil {
		return err
	}
	status, err := writer.Wait(c, 110*time.Second)
	if err := h.guestEnded(c, writer, status, err); err != nil {
		return errors.Join(err, gateway.complaint())
	}
	if _, err := h.script(c, unmounted, guestMount, fmt.Sprint(nfsRDMAPort)); err != nil {
		return err
	}
	return gateway.interrupt()
}

func (h *harness) gatewayCaptured(c *suite.Case, version string) error {
	gateway, mount, err := h.gateway(c, version, "--pcap", c.File("capture.pcapng"))
	if err != nil {
		return err
	}
	defer gateway.stop()
	defer h.emptyShare(c)
	if err := h.onMount(c, mount, guestMount, smallWork, nfsRDMAPort); err != nil {
		return errors.Join(err, gateway.complaint())
	}
	if err := gateway.interrupt(); err != nil {
		return err
	}
	if version == "3" {
		return judgeRPC(c, "LOOKUP", "READ", "WRITE", "READLINK")
	}
	return judgeRPC(c, "V4")
}

// gatewayFromTCP mounts by TCP, in the guest, a gateway before the guest's
// server on RDMA.
func (h *harness) gatewayFromTCP(c *suite.Case) error {
	p := h.host(c, "weft-gateway", h.weft, "gateway", "--listen", fmt.Sprintf("tcp://%s:%d", h.guest.Gateway, nfsPort),
		"--to", fmt.Sprintf("rdma://%s:%d", h.guest.Addr, nfsRDMAPort))
	if err := p.start(); err != nil {
		return err
	}
	defer p.stop()
	defer h.emptyShare(c)
	if err := h.guest.AwaitHostListener(c, nfsPort); err != nil {
		return errors.Join(err, p.complaint())
	}
	for _, options := range []string{"vers=3,proto=tcp,port=2049,nolock", "vers=4.1,proto=tcp,port=2049"} {
		dir := guestShare
		if strings.HasPrefix(options, "vers=4") {
			dir = "/"
		}
		mount := fmt.Sprintf("mkdir -p %[3]s && mount -t nfs -o %[1]s %[2]s:%[4]s %[3]s", options, h.guest.Gateway, guestMount, dir)
		if err := h.onMount(c, mount, guestMount, copyTree, nfsPort); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", options, err), p.complaint())
		}
		h.emptyShare(c)
	}
	return p.interrupt()
}
