// A path of MTU 1500: a veth pair between two network namespaces, in which the ends of a
// sample run. The namespaces are made without privileges, inside of a user namespace.
//
// The run asks a process in the first namespace, the wire, for samples. The wire starts the
// target in the second namespace and is the initiator.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// Addresses of the two ends.
const (
	nearAddress = "192.0.2.1"
	farAddress  = "192.0.2.2"
)

// namespacesRemedy is what to look at if namespaces are refused.
const namespacesRemedy = "apt-get install iproute2 util-linux; sysctl user.max_user_namespaces kernel.apparmor_restrict_unprivileged_userns"

// A wire is the process in the first namespace.
type wire struct{ *peer }

// A wireJob asks it for a sample, whose initiator runs on CPUs.
type wireJob struct {
	Job  Job
	CPUs []int
}

// A wireSample is what it answers.
type wireSample struct {
	Sample Sample
	Err    string
}

// startWire makes the namespaces and what is in them.
func startWire(ctx context.Context) (*wire, error) {
	id := func(host int) []syscall.SysProcIDMap { return []syscall.SysProcIDMap{{HostID: host, Size: 1}} }
	p, err := startPeer(ctx, wireRole, &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: id(os.Getuid()), GidMappings: id(os.Getgid()),
	})
	if err != nil {
		return nil, fmt.Errorf("user and network namespaces cannot be had: %w", err)
	}
	w := &wire{p}
	var ready wireSample
	if err := p.listen(&ready); err != nil {
		return nil, errors.Join(err, w.close())
	}
	if ready.Err != "" {
		return nil, errors.Join(errors.New(ready.Err), w.close())
	}
	return w, nil
}

// close ends the process, if there is one.
func (w *wire) close() error {
	if w == nil {
		return nil
	}
	return w.peer.close()
}

// sample takes one.
func (w *wire) sample(job Job, cpus []int) (Sample, error) {
	var s wireSample
	if err := errors.Join(w.send(wireJob{job, cpus}), w.listen(&s)); err != nil {
		return s.Sample, err
	}
	if s.Err != "" {
		return s.Sample, errors.New(s.Err)
	}
	return s.Sample, nil
}

// runWire is the whole of the process.
func runWire(in io.Reader, out io.Writer) (err error) {
	say, hear := json.NewEncoder(out), json.NewDecoder(in)
	ctx := context.Background()
	target, err := startPeer(ctx, targetRole, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET})
	if err == nil {
		err = layWire(ctx, target.cmd.Process.Pid)
	}
	if err != nil {
		return say.Encode(wireSample{Err: fmt.Sprintf("a veth pair between namespaces cannot be had: %v", err)})
	}
	defer func() { err = errors.Join(err, target.close()) }()
	e, err := newEnd()
	if err != nil {
		return err
	}
	defer e.close()
	if err := say.Encode(wireSample{}); err != nil {
		return err
	}
	for {
		var j wireJob
		if err := hear.Decode(&j); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var answer wireSample
		j.Job.Address = farAddress
		if answer.Sample, err = target.sample(ctx, e, j.Job, j.CPUs, ""); err != nil {
			answer.Err = err.Error()
		}
		if err := say.Encode(answer); err != nil {
			return err
		}
	}
}

// layWire connects this namespace with that of the process pid. The MTU of a veth pair is
// 1500 octets.
func layWire(ctx context.Context, pid int) error {
	far := []string{"nsenter", "--net=/proc/" + strconv.Itoa(pid) + "/ns/net"}
	for _, command := range [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", strconv.Itoa(pid)},
		{"ip", "addr", "add", nearAddress + "/30", "dev", "near"},
		{"ip", "link", "set", "near", "mtu", "1500", "up"},
		append(far, "ip", "addr", "add", farAddress+"/30", "dev", "far"),
		append(far, "ip", "link", "set", "far", "mtu", "1500", "up"),
	} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", command, err, out)
		}
	}
	return nil
}
