// Site makes a static web site of this repository's documents: README.md, docs, the
// documentation of the Go packages, and the source files that these link to. Hugo renders
// it; afterwards every link is checked. The texts stay where they are.
//
//	go run .                      into the directory public
//	go run . -o DIR -serve ADDR   into DIR, and serves it for a look
package main

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
)

func main() {
	var (
		out   = flag.String("o", "public", "`directory` of the site; what is in it is replaced")
		root  = flag.String("root", "..", "`directory` of the repository")
		serve = flag.String("serve", "", "`address` to serve the site at afterwards, such as 127.0.0.1:8080")
	)
	flag.Parse()
	if err := run(*root, *out, *serve); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(root, out, serve string) error {
	if flag.NArg() > 0 {
		return errors.New("takes no arguments; see -h")
	}
	if err := Build(os.DirFS(root), out); err != nil {
		return err
	}
	fmt.Println("made and checked", out)
	if serve == "" {
		return nil
	}
	fmt.Printf("serving http://%s/ until interrupted\n", serve)
	return http.ListenAndServe(serve, http.FileServer(http.Dir(out)))
}
