package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

// TestExportedFunctionsContainPanics looks at the source of each function that C calls.
func TestExportedFunctionsContainPanics(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "main.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	exported := 0
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Doc == nil || !strings.Contains(f.Doc.List[len(f.Doc.List)-1].Text, "//export ") {
			continue
		}
		exported++
		if !defersContain(f.Body) {
			t.Errorf("%s does not contain panics", f.Name)
		}
	}
	if exported < 10 {
		t.Errorf("%d exported functions were found", exported)
	}
}

// defersContain reports whether a function's first statements, but for a declaration,
// are deferrals, of which one is of contain.
func defersContain(body *ast.BlockStmt) bool {
	for _, s := range body.List {
		switch s := s.(type) {
		case *ast.DeclStmt:
		case *ast.DeferStmt:
			if f, ok := s.Call.Fun.(*ast.Ident); ok && f.Name == "contain" {
				return true
			}
		default:
			return false
		}
	}
	return false
}

func TestAPanicBecomesAnErrorAndFailsTheDevice(t *testing.T) {
	for name, f := range map[string]func(t *testing.T){
		"in a verb": func(t *testing.T) {
			if errno := syscall.Errno(weftVerb(1, nil)); errno != syscall.EIO { // WEFT_OPEN
				t.Errorf("%v, expected %v", errno, syscall.EIO)
			}
		},
		"elsewhere": func(t *testing.T) {
			if err := elsewhere(func() error { panic("a test") }); err != syscall.EIO {
				t.Errorf("%v, expected %v", err, syscall.EIO)
			}
		},
		"in a goroutine": func(t *testing.T) { spawn(func() { panic("a test") }) },
	} {
		anEngineFor(t, name, false, func(t *testing.T) {
			expectsDefect = true
			f(t)
			eventually(t, "the failure", failed.Load)
		})
	}
}

// TestAPanicInASinkOverflowsTheQueue has a completion put into a queue that is not there.
func TestAPanicInASinkOverflowsTheQueue(t *testing.T) {
	anEngine(t, false)
	expectsDefect = true
	b := newBed(t)
	q := b.newQP()
	broken := completionQueue{}
	if broken.sink(&verbs.WC{QPNum: q.qp.Num()}) {
		t.Error("the completion was taken")
	}
}

// The engine does not start with a congestion control that no connection could have.
func TestACongestionControlThatThereIsNotIsRefused(t *testing.T) {
	t.Setenv("WEFT_CONGESTION", "no-such")
	defer func() { options.socket.Congestion = "" }()
	if _, err := readOptions(); err == nil || !strings.Contains(err.Error(), "no-such") {
		t.Errorf("%v, expected an error that names it", err)
	}
}
