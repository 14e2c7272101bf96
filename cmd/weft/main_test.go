package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weft-rdma/weft/cmd/weft/internal/confine"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"weft": main})
}

// The scripts of testdata/script say what the command does. Beside testscript's
// own commands they have:
//
//	server ARGS...   starts weft as a server and waits until it listens:
//	                 $HOST, $PORT and $ADDR are where
//	interrupt        interrupts the server
//	[!] stopped      waits for its end, with status 0, or 130 if it was interrupted
//	                 and serves no files, or with ! another one; its output is in the
//	                 files server.out and server.err
//	status N ARGS... runs a command that is to end with status N
//	as UID N ARGS... runs weft as another user; it is to end with status N, and its
//	                 output is in the files as.out and as.err
//	tcpaddr          makes $TCPADDR of where weft serve says that it is over TCP
//	$N               is two letters with a line feed between them
//	full ARGS...     runs weft with a standard output that takes nothing
//	link NEW OLD     gives a file a second name
//	resultsof FILE   checks the JSON document of weft perf in FILE
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"server":    startServer,
			"interrupt": interruptServer,
			"reload":    reloadServer,
			"stopped":   awaitServer,
			"resultsof": checkResults,
			"tcpaddr":   findTCP,
			"status":    checkStatus,
			"link":      makeLink,
			"as":        runAs,
			"full":      isFull,
		},
		// What outlives a command is not kept where this user has it.
		Setup: func(env *testscript.Env) error {
			env.Setenv("STATE_DIRECTORY", filepath.Join(env.WorkDir, ".state"))
			env.Setenv("N", "a\nb")
			return nil
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "ipv6":
			case "landlock":
				_, err := confine.Version()
				return err == nil, nil
			case "root":
				return os.Geteuid() == 0, nil
			default:
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			ln, err := net.Listen("tcp", "[::1]:0")
			if err != nil {
				return false, nil
			}
			return true, ln.Close()
		},
	})
}

// server is a script's running server.
type server struct {
	cmd    *exec.Cmd
	stderr *os.File
	rest   chan error  // end of standard error
	status int         // to end with
	reload chan string // what it says of a reload
	tcp    chan string // its address over TCP, if it prints one; closed at the end of standard error
}

var mu sync.Mutex // of serverOf

// serverOf finds the server of a script by its working directory.
var serverOf = make(map[string]*server)

func startServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("server does not take !")
	}
	stdout, err := os.Create(ts.MkAbs("server.out"))
	ts.Check(err)
	defer stdout.Close()
	log, err := os.Create(ts.MkAbs("server.err"))
	ts.Check(err)
	weft, err := exec.LookPath("weft")
	ts.Check(err)
	s := &server{cmd: exec.Command(weft, args...), stderr: log, rest: make(chan error, 1), reload: make(chan string, 16), tcp: make(chan string, 1)}
	s.cmd.Dir = ts.MkAbs(".")
	s.cmd.Env = append(os.Environ(), "STATE_DIRECTORY="+ts.Getenv("STATE_DIRECTORY"))
	s.cmd.Stdout = stdout
	stderr, err := s.cmd.StderrPipe()
	ts.Check(err)
	ts.Check(s.cmd.Start())
	ts.Defer(func() { s.cmd.Process.Kill() })

	lines := bufio.NewReader(io.TeeReader(stderr, log))
	line, _ := lines.ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if !ok {
		ts.Fatalf("the server said %q in place of where it listens", line)
	}
	host, port, err := net.SplitHostPort(addr)
	ts.Check(err)
	ts.Setenv("HOST", host)
	ts.Setenv("PORT", port)
	ts.Setenv("ADDR", addr)
	go func() { s.rest <- s.listen(lines) }()
	mu.Lock()
	defer mu.Unlock()
	serverOf[ts.Getenv("WORK")] = s
}

// listen reads the server's standard error, to its end.
func (s *server) listen(lines *bufio.Reader) error {
	defer close(s.tcp)
	found := false
	for {
		line, err := lines.ReadString('\n')
		if _, addr, ok := strings.Cut(line, "over TCP on "); ok && !found {
			found = true
			s.tcp <- strings.TrimSpace(addr)
		}
		// A confined server that needs more places is replaced by another process.
		if strings.Contains(line, ": reloaded: ") || strings.Contains(line, ": not reloaded: ") || strings.HasPrefix(line, "listening on ") {
			s.reload <- line
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// reloadServer has the server read its configuration again, and waits until it has.
func reloadServer(ts *testscript.TestScript, _ bool, args []string) {
	s := serverFor(ts)
	ts.Check(s.cmd.Process.Signal(reload))
	select {
	case line := <-s.reload:
		if want := strings.Join(args, " "); !strings.Contains(line, want) {
			ts.Fatalf("the server said %q, want %q", line, want)
		}
	case <-time.After(time.Minute):
		ts.Fatalf("the server has not reloaded; it said:\n%s", ts.ReadFile("server.err"))
	}
}

func serverFor(ts *testscript.TestScript) *server {
	mu.Lock()
	defer mu.Unlock()
	s := serverOf[ts.Getenv("WORK")]
	if s == nil {
		ts.Fatalf("there is no server")
	}
	return s
}

func interruptServer(ts *testscript.TestScript, _ bool, _ []string) {
	s := serverFor(ts)
	if command := s.cmd.Args[1]; command != "serve" && command != "gateway" {
		s.status = 130
	}
	ts.Check(s.cmd.Process.Signal(os.Interrupt))
}

func awaitServer(ts *testscript.TestScript, neg bool, _ []string) {
	s := serverFor(ts)
	select {
	case <-s.rest:
	case <-time.After(time.Minute):
		ts.Fatalf("the server still runs; it said:\n%s", ts.ReadFile("server.err"))
	}
	err := s.cmd.Wait()
	s.stderr.Close()
	if (s.cmd.ProcessState.ExitCode() != s.status) != neg {
		ts.Fatalf("the server ended with %v, want status %d; it said:\n%s", err, s.status, ts.ReadFile("server.err"))
	}
}

// isFull runs weft with a standard output that takes nothing: that is an error.
func isFull(ts *testscript.TestScript, _ bool, args []string) {
	var stderr bytes.Buffer
	full := writerFunc(func([]byte) (int, error) { return 0, errors.New("no space left") })
	got := run(context.Background(), args, full, &stderr)
	if got != exitFailed || !strings.Contains(stderr.String(), "no space left") {
		ts.Fatalf("weft %s ended with status %d, want %d; it said: %s", strings.Join(args, " "), got, exitFailed, &stderr)
	}
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

// findTCP waits until the server has printed its TCP address.
func findTCP(ts *testscript.TestScript, _ bool, _ []string) {
	addr, ok := <-serverFor(ts).tcp
	if !ok {
		ts.Fatalf("the server did not print its address over TCP")
	}
	ts.Setenv("TCPADDR", addr)
}

func checkStatus(ts *testscript.TestScript, _ bool, args []string) {
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("%s ended with status %d, want %s", strings.Join(args[1:], " "), got, args[0])
	}
}

func makeLink(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.Link(ts.MkAbs(args[1]), ts.MkAbs(args[0])))
}

func checkResults(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(checkDocument(ts.ReadFile(args[0])))
}

// checkDocument checks that doc is one JSON document with the members that
// programs count on.
func checkDocument(doc string) error {
	dec := json.NewDecoder(strings.NewReader(doc))
	var report struct {
		System  map[string]any   `json:"system"`
		Results []map[string]any `json:"results"`
	}
	if err := dec.Decode(&report); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("there is more behind the document")
	}
	if report.System == nil || len(report.Results) == 0 {
		return fmt.Errorf("no system, or no results, in %s", doc)
	}
	for _, r := range report.Results {
		if _, ok := r["op"].(string); !ok {
			return fmt.Errorf("no op in %v", r)
		}
		if _, ok := r["crc"].(bool); !ok {
			return fmt.Errorf("no crc in %v", r)
		}
		for _, name := range []string{"size", "bytes_per_second", "messages_per_second", "latency_p50_ns", "latency_p99_ns", "tcp_bytes_per_second", "ratio", "verified_messages"} {
			if n, ok := r[name].(float64); !ok || n <= 0 {
				return fmt.Errorf("%s is %v in %v", name, r[name], r)
			}
		}
	}
	return nil
}
