// This file is about files over RDMA: Linux mounts what Weft serves, Weft
// copies to and from what Linux serves, and Weft's gateway stands between a
// Linux client and a Linux server.

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weft-rdma/weft/interop/internal/guest"
	"github.com/weft-rdma/weft/interop/internal/suite"
	"github.com/weft-rdma/weft/interop/internal/tshark"
)

// What the guest does with a mounted directory. Each is the body of a shell
// function's worth of commands whose arguments are $1 and so on.
var (
	//go:embed scripts/tree.sh
	makeTree string
	//go:embed scripts/copies.sh
	copyTree string
	//go:embed scripts/semantics.sh
	fileSemantics string
	//go:embed scripts/unmounted.sh
	unmounted string
	//go:embed scripts/knfsd.sh
	startKnfsd string
)

const (
	nfsRDMAPort = 20049 // RFC 8267 §6.3
	nfsPort     = 2049
	portmapPort = 111

	guestTree  = "/tmp/tree"   // made by makeTree
	guestMount = "/tmp/mnt"    // where the guest mounts
	guestShare = "/tmp/export" // what the guest's own server exports
)

// files runs the cases; the guest is up.
func (h *harness) files(ctx context.Context) {
	h.suite.Run(ctx, "files/prepare", func(c *suite.Case) error {
		_, err := h.script(c, makeTree, guestTree)
		return err
	})
	h.suite.Run(ctx, "files/serve/copies", func(c *suite.Case) error { return h.served(c, copyTree) })
	h.suite.Run(ctx, "files/serve/semantics", func(c *suite.Case) error { return h.served(c, fileSemantics) })
	h.suite.Run(ctx, "files/serve/two-mounts", h.servedTwice)
	h.suite.Run(ctx, "files/serve/restart", h.servedByANewProcess)
	h.suite.Run(ctx, "files/serve/read-only", h.servedReadOnly)
	h.suite.Run(ctx, "files/serve/locks", h.servedWithoutLocks)
	h.suite.Run(ctx, "files/serve/capture", h.servedAndCaptured)
	h.suite.Run(ctx, "files/knfsd/start", h.startKnfsd)
	h.suite.Run(ctx, "files/client/copies", h.clientCopies)
	h.suite.Run(ctx, "files/client/capture", h.clientCaptured)
	for _, version := range []string{"3", "4.1"} {
		h.suite.Run(ctx, "files/gateway/v"+version+"/copies", func(c *suite.Case) error { return h.gatewayTo(c, version, copyTree) })
		h.suite.Run(ctx, "files/gateway/v"+version+"/semantics", func(c *suite.Case) error { return h.gatewayTo(c, version, fileSemantics) })
		h.suite.Run(ctx, "files/gateway/v"+version+"/restart", func(c *suite.Case) error { return h.gatewaySurvives(c, version) })
		h.suite.Run(ctx, "files/gateway/v"+version+"/capture", func(c *suite.Case) error { return h.gatewayCaptured(c, version) })
	}
	h.suite.Run(ctx, "files/gateway/to-rdma", h.gatewayFromTCP)
}

// script runs a shell script in the guest.
func (h *harness) script(c *suite.Case, body string, args ...string) (string, error) {
	var set strings.Builder
	set.WriteString("set --")
	for _, arg := range args {
		set.WriteString(" " + quote(arg))
	}
	out, err := h.guest.Run(c, set.String()+"\n"+body)
	c.Logf("guest$ %s\n%s", set.String(), out)
	return out, err
}

// quote makes one word of the shell's of text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// mountCommand is the guest's command that mounts dir of server over RDMA.
// Options that the version needs are added.
func mountCommand(server, dir, version, where string) string {
	options := "rdma,port=20049,vers=" + version
	if strings.HasPrefix(version, "3") {
		options = "vers=3,proto=rdma,port=20049,nolock"
	}
	return fmt.Sprintf("mkdir -p %[4]s && mount -t nfs -o %[1]s %[2]s:%[3]s %[4]s", options, server, dir, where)
}

func remountCommand(mount, where string) string { return "umount " + where + " && " + mount }

// serve starts `weft serve` on an empty directory of this machine, which it
// returns, and waits until it listens.
func (h *harness) serve(c *suite.Case, args ...string) (*hostProgram, string, error) {
	dir, err := os.MkdirTemp("", "weft-served-")
	if err != nil {
		return nil, "", err
	}
	p, err := h.serveFolder(c, dir, args...)
	if err != nil {
		os.RemoveAll(dir)
	}
	return p, dir, err
}

func (h *harness) serveFolder(c *suite.Case, dir string, args ...string) (*hostProgram, error) {
	gateway := h.guest.Gateway
	p := h.host(c, "weft-serve", append([]string{h.weft, "serve", dir,
		"--listen", fmt.Sprintf("%s:%d", gateway, nfsRDMAPort), "--tcp", fmt.Sprintf("%s:%d", gateway, nfsPort), "--portmap", "own", "--squash", "none"}, args...)...)
	if err := p.start(); err != nil {
		return nil, err
	}
	for _, port := range []int{nfsRDMAPort, nfsPort, portmapPort} {
		if err := h.guest.AwaitHostListener(c, port); err != nil {
			return nil, errors.Join(err, p.complaint())
		}
	}
	return p, nil
}

// served mounts a directory served by Weft, runs a script there and unmounts.
func (h *harness) served(c *suite.Case, body string) error {
	server, dir, err := h.serve(c)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	defer server.stop()
	mount := mountCommand(h.guest.Gateway, "/", "3", guestMount)
	if err := h.onMount(c, mount, guestMount, body, nfsRDMAPort); err != nil {
		return errors.Join(err, server.complaint())
	}
	return server.interrupt()
}

// onMount mounts in the guest, runs a script on it, unmounts, and looks that
// nothing is left.
func (h *harness) onMount(c *suite.Case, mount, where, body string, port int) error {
	if _, err := h.guest.Run(c, mount); err != nil {
		return fmt.Errorf("mounting: %w", err)
	}
	defer h.guest.Run(context.WithoutCancel(c), "grep -q ' "+where+" ' /proc/mounts && umount -f -l "+where+"; true")
	args := []string{where, remountCommand(mount, where)}
	if body == copyTree {
		args = append([]string{guestTree}, args...)
	}
	if _, err := h.script(c, body, args...); err != nil {
		return err
	}
	_, err := h.script(c, unmounted, where, fmt.Sprint(port))
	return err
}

// servedTwice mounts two directories of one server at a time, and one of them
// twice.
func (h *harness) servedTwice(c *suite.Case) error {
	server, dir, err := h.serve(c)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	defer server.stop()
	second := guestMount + "2"
	// Two mounts of one server share their connection by default.
	body := fmt.Sprintf(`set -eu
mkdir -p %[2]s && mount -t nfs -o vers=3,proto=rdma,port=20049,nolock,nosharecache,nconnect=2 %[3]s:/ %[2]s
for i in $(seq 20); do (cp %[1]s/dir$((i %% 10 + 1))/file$i $1/first$i 2>/dev/null || head -c 3000000 %[1]s/big >$1/first$i) & (head -c 2000000 %[1]s/big >%[2]s/second$i) & done; wait
sync -f $1; sync -f %[2]s
for i in $(seq 20); do cmp $1/second$i %[2]s/second$i; cmp $1/first$i %[2]s/first$i; cmp -n 2000000 %[1]s/big $1/second$i; done
umount %[2]s`, guestTree, second, h.guest.Gateway)
	defer h.guest.Run(context.WithoutCancel(c), "grep -q ' "+second+" ' /proc/mounts && umount -f -l "+second+"; true")
	if err := h.onMount(c, mountCommand(h.guest.Gateway, "/", "3", guestMount), guestMount, body, nfsRDMAPort); err != nil {
		return errors.Join(err, server.complaint())
	}
	return server.interrupt()
}

// startWriter mounts and starts a script in the guest, and returns when it has printed
// something.
func (h *harness) startWriter(c *suite.Case, mount string, limit time.Duration, script string) (w *guest.Program, unmount func(), err error) {
	if _, err := h.guest.Run(c, mount); err != nil {
		return nil, nil, fmt.Errorf("mounting: %w", err)
	}
	unmount = func() {
		h.guest.Run(context.WithoutCancel(c), "grep -q ' "+guestMount+" ' /proc/mounts && umount -f -l "+guestMount+"; true")
	}
	if w, err = h.guest.Start(c, "writer", limit, "bash -c "+quote(script)); err == nil {
		err = w.AwaitOutput(c, programLimit)
	}
	if err != nil {
		unmount()
		return nil, nil, err
	}
	return w, unmount, nil
}

// servedByANewProcess kills the server while files are open and written, and
// starts another on the same directory: the client must not notice.
func (h *harness) servedByANewProcess(c *suite.Case) error {
	server, dir, err := h.serve(c)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	defer func() { server.stop() }()
	mount := mountCommand(h.guest.Gateway, "/", "3", guestMount)
	writer, unmount, err := h.startWriter(c, mount, 100*time.Second, fmt.Sprintf(
		"mkdir -p %[1]s/deep/er && exec 3>%[1]s/deep/er/held; echo begun; for i in $(seq 8); do cat %[2]s/big >%[1]s/deep/er/copy$i; cmp %[2]s/big %[1]s/deep/er/copy$i; done; echo end >&3", guestMount, guestTree))
	if err != nil {
		return errors.Join(err, server.complaint())
	}
	defer unmount()
	if _, err := h.guest.Run(c, fmt.Sprintf("for i in $(seq 400); do [ -e %s/deep/er/copy2 ] && exit 0; sleep 0.02; done; exit 1", guestMount)); err != nil {
		return errors.Join(fmt.Errorf("nothing is written: %w", err), server.complaint())
	}
	server.stop() // by SIGKILL
	if server, err = h.serveFolder(c, dir); err != nil {
		return err
	}
	status, err := writer.Wait(c, 100*time.Second)
	if err := h.guestEnded(c, writer, status, err); err != nil {
		return errors.Join(err, server.complaint())
	}
	if got, err := os.ReadFile(filepath.Join(dir, "deep/er/held")); err != nil || string(got) != "end\n" {
		return fmt.Errorf("the file held open has %q, %w", got, err)
	}
	if _, err := h.script(c, unmounted, guestMount, fmt.Sprint(nfsRDMAPort)); err != nil {
		return err
	}
	return server.interrupt()
}

// servedReadOnly mounts a directory that may not be changed.
func (h *harness) servedReadOnly(c *suite.Case) error {
	dir, err := os.MkdirTemp("", "weft-served-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("text\n"), 0o644); err != nil {
		return err
	}
	server, err := h.serveFolder(c, dir, "--read-only")
	if err != nil {
		return err
	}
	defer server.stop()
	body := `set -eu
[ "$(cat $1/file)" = text ]
for change in "echo x >$1/file" "echo x >$1/new" "rm -f $1/file" "mkdir $1/d" "mv $1/file $1/g" "ln $1/file $1/h" "chmod 600 $1/file" "touch $1/file"; do
	if (eval "$change") 2>/tmp/why; then echo "done in spite of read-only: $change" >&2; exit 1; fi
	grep -q "Read-only file system\|Permission denied" /tmp/why || { cat /tmp/why >&2; exit 1; }
done
[ "$(ls $1)" = file ]`
	if err := h.onMount(c, mountCommand(h.guest.Gateway, "/", "3", guestMount), guestMount, body, nfsRDMAPort); err != nil {
		return errors.Join(err, server.complaint())
	}
	return server.interrupt()
}

// servedWithoutLocks mounts without the option nolock: a lock is refused at once,
// and everything else works.
func (h *harness) servedWithoutLocks(c *suite.Case) error {
	server, dir, err := h.serve(c)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	defer server.stop()
	body := `set -eu
echo text >$1/file; [ "$(cat $1/file)" = text ]
if (timeout 20 flock -n 9) 9<$1/file 2>/tmp/why; then echo "a lock was had" >&2; exit 1; fi
grep -q "No locks available" /tmp/why || { cat /tmp/why >&2; exit 1; }`
	mount := "pidof rpcbind >/dev/null || rpcbind -w; " + strings.Replace(mountCommand(h.guest.Gateway, "/", "3", guestMount), ",nolock", "", 1)
	if err := h.onMount(c, mount, guestMount, body, nfsRDMAPort); err != nil {
		return errors.Join(err, server.complaint())
	}
	return server.interrupt()
}

// smallWork is enough for a capture to hold every kind of chunk.
const smallWork = `set -eu
mkdir $1/captured && cd $1/captured
head -c 100000 /dev/urandom >a; head -c 3 /dev/urandom >b; head -c 5001 /dev/urandom >odd; ln -s "$(printf %01500d 7)" long; ln -s a short
sync -f .
md5sum a b odd >/tmp/sums
cd / && eval "$2" && cd $1/captured
md5sum -c --quiet /tmp/sums
mkdir many && (cd many && seq -f 'an-entry-with-a-long-name-%05g' 300 | xargs touch)
ls -l many | wc -l; readlink long short
cd / && rm -r $1/captured`

// servedAndCaptured records what passes between Linux's client and Weft.
func (h *harness) servedAndCaptured(c *suite.Case) error {
	server, dir, err := h.serve(c, "--pcap", c.File("capture.pcapng"))
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	defer server.stop()
	if err := h.onMount(c, mountCommand(h.guest.Gateway, "/", "3", guestMount), guestMount, smallWork, nfsRDMAPort); err != nil {
		return errors.Join(err, server.complaint())
	}
	if err := server.interrupt(); err != nil {
		return err
	}
	return judgeRPC(c, "GETATTR", "LOOKUP", "READ", "WRITE", "CREATE", "READDIRPLUS", "READLINK", "SYMLINK", "REMOVE")
}

// judgeRPC has tshark dissect the capture as NFS over RPC-over-RDMA, in which
// each of the procedures must be seen.
func judgeRPC(c *suite.Case, procedures ...string) error {
	report, err := tshark.JudgeRPC(c, c.File("capture.pcapng"))
	if err != nil {
		return err
	}
	if faults := report.Faults(); len(faults) > 0 {
		return fmt.Errorf("tshark: %s; %d faults", faults[0], len(faults))
	}
	for _, procedure := range procedures {
		if report.Calls[procedure] == 0 {
			return fmt.Errorf("tshark shows no %s: %v", procedure, report.Calls)
		}
	}
	c.Notef("%d RPC-over-RDMA messages, %d of them excused", report.Messages, report.Excused)
	return nil
}
