// A worker: a process, and the connection with it.

package supervise

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/cmd/weft/internal/confine"
	"github.com/weft-rdma/weft/cmd/weft/internal/service"
)

// A worker is a process that serves, or is about to.
type worker struct {
	cmd    *exec.Cmd
	rules  *confine.Rules
	conn   *net.UnixConn
	status int // of its end
}

// A message is a notification of a worker.
type message struct {
	text   string
	socket *os.File // to keep; nil for none
}

// firstExtra is the descriptor of the first of exec.Cmd's ExtraFiles.
const firstExtra = 3

// newWorker starts a worker. Once it returns, the worker has descriptors of its own.
func newWorker(cfg *Config, rules *confine.Rules, sockets []stored) (*worker, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "control")
	defer theirs.Close()
	ours := os.NewFile(uintptr(pair[0]), "control")
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return nil, err
	}
	w := &worker{rules: rules, conn: conn.(*net.UnixConn), cmd: &exec.Cmd{
		Path: cfg.Program, Args: cfg.Args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
	}}
	var names []string
	for _, s := range sockets {
		w.cmd.ExtraFiles = append(w.cmd.ExtraFiles, s.file)
		names = append(names, s.name)
	}
	w.cmd.ExtraFiles = append(w.cmd.ExtraFiles, theirs)
	w.cmd.Env = append(os.Environ(),
		fmt.Sprintf("%s=%d", service.ControlVariable, firstExtra+len(sockets)),
		"LISTEN_PID="+strconv.Itoa(os.Getpid()), "LISTEN_FDS="+strconv.Itoa(len(sockets)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
	if t := cfg.Manager.Watchdog; t > 0 {
		w.cmd.Env = append(w.cmd.Env, fmt.Sprintf("WATCHDOG_USEC=%d", 2*t/time.Microsecond))
	}
	if err := cfg.Start(w.cmd, rules); err != nil {
		w.conn.Close()
		return nil, err
	}
	return w, nil
}

// tell sends a command. A worker that is gone will be noticed by its end.
func (w *worker) tell(c service.Command) { _, _ = w.conn.Write([]byte(c)) }

// report delivers what the worker says, and its end.
func (w *worker) report(events chan<- event) {
	for {
		m, err := w.receive()
		if err != nil {
			break
		}
		events <- event{w, m}
	}
	w.conn.Close()
	w.status = statusOf(w.cmd.Wait())
	events <- event{from: w}
}

// receive waits for a message.
func (w *worker) receive() (*message, error) {
	b, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4*8))
	n, oobn, _, _, err := w.conn.ReadMsgUnix(b, oob)
	if err != nil {
		return nil, err
	}
	m := &message{text: string(b[:n])}
	for _, fd := range descriptors(oob[:oobn]) {
		unix.CloseOnExec(fd)
		f := os.NewFile(uintptr(fd), "socket")
		if m.socket != nil {
			f.Close()
			continue
		}
		m.socket = f
	}
	return m, nil
}

func descriptors(oob []byte) (all []int) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	for _, cm := range messages {
		if fds, err := unix.ParseUnixRights(&cm); err == nil {
			all = append(all, fds...)
		}
	}
	return all
}

// statusOf is the exit status as shells have it.
func statusOf(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		return 1
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return exit.ExitCode()
}
