// This file applies the configuration file of weft serve: at the start, for --check, and
// again on SIGHUP.

package main

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cmd/weft/internal/fileserver"
	"github.com/weft-rdma/weft/nfs/mount"
)

// serveConfig holds the flag of the configuration file, and what is in use of it.
type serveConfig struct {
	name  string
	inUse *serveFile
}

// inFile are the flags that a configuration file takes the place of.
var inFile = []string{
	"listen", "tcp", "read-only", "allow", "allow-others", "insecure", "squash", "async", "state", "portmap", "xprtsec",
	"tls", "tls-cert", "tls-key", "tls-ca", "tls-name", "tls-keylog",
}

// directory returns the directory of the command line; "" with a configuration file.
func (c *serveConfig) directory(cmd *cobra.Command, args []string) (string, error) {
	switch {
	case c.name == "" && len(args) == 0:
		return "", usagef("missing argument: expected a directory to serve, such as ., or --config FILE")
	case c.name == "":
		return args[0], nil
	case len(args) > 0:
		return "", usagef("unexpected argument %q: with --config, the file says what is served", args[0])
	}
	for _, name := range inFile {
		if cmd.Flags().Changed(name) {
			return "", usagef("--%s: with --config, the file says that", name)
		}
	}
	return "", nil
}

// prepare makes the configuration of the file server from the file. With --check it says
// that all is well.
func (c *serveConfig) prepare(s *serve) (cfg fileserver.Config, err error) {
	if c.inUse, err = readServeFile(c.name); err != nil {
		return cfg, err
	}
	c.inUse.flags(s)
	if err := s.tls.open(s.notable); err != nil {
		return cfg, fmt.Errorf("%s: [tls]: %w", c.name, err)
	}
	exports, err := c.exports(s, c.inUse)
	if err != nil {
		return cfg, err
	}
	_, cfg, err = s.config("/")
	if err != nil {
		return cfg, fmt.Errorf("%s: %w", c.name, err)
	}
	cfg.FurtherRDMA, cfg.FurtherTCP = rest(c.inUse.Listen), rest(c.inUse.TCP)
	cfg.Exports = exports
	by := fileserver.RulesOf(exports, mount.Personal())
	cfg.Allow, cfg.Names, cfg.Insecure, cfg.XprtSec = by.Allow, by.Names, by.Insecure, by.XprtSec
	if err := s.tls.demand(&cfg); err != nil {
		return cfg, fmt.Errorf("%s: [tls]: %w", c.name, err)
	}
	if s.check {
		c.report(s, exports)
	}
	return cfg, nil
}

// exports returns the exports of a file, whose directories exist.
func (c *serveConfig) exports(s *serve, file *serveFile) ([]fileserver.Export, error) {
	exports, err := file.exports(s.tls.opened != nil, s.tls.authorityGiven)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	var errs []error
	for _, x := range exports {
		st, err := os.Stat(x.Files.Root)
		if err == nil && !st.IsDir() {
			err = fmt.Errorf("%s is no directory", x.Files.Root)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: export %s: %w", c.name, x.Name, err))
		}
	}
	return exports, errors.Join(errs...)
}

// report says what --check has found.
func (c *serveConfig) report(s *serve, exports []fileserver.Export) {
	w := s.cmd.OutOrStdout()
	for _, line := range overlaps(exports) {
		fmt.Fprintf(w, "%s: note: %s\n", c.name, line)
	}
	names := make([]string, 0, len(exports))
	for _, x := range exports {
		names = append(names, x.Name)
	}
	fmt.Fprintf(w, "%s: ok: exports %s\n", c.name, strings.Join(names, ", "))
}

// reloading returns the function that reads the file again and applies it, and returns what is
// served then; nil without a file.
func (c *serveConfig) reloading(s *serve, server *fileserver.Server) func() (string, error) {
	if c.name == "" {
		return nil
	}
	return func() (string, error) { return c.reload(s, server) }
}

// reload applies the file as it is now. After an error all stays as it is.
func (c *serveConfig) reload(s *serve, server *fileserver.Server) (serves string, err error) {
	file, exports, err := c.again(s)
	if err != nil {
		return "", err
	}
	if err := server.Reload(exports); err != nil {
		return "", err
	}
	what := plain(strings.Join(changes(c.inUse, file), "; "))
	fmt.Fprintf(s.cmd.ErrOrStderr(), "%s: reloaded: %s\n", s.cmd.CommandPath(), what)
	c.inUse.Exports = file.Exports
	return serving(exports), nil
}

// again reads the file anew.
func (c *serveConfig) again(s *serve) (*serveFile, []fileserver.Export, error) {
	file, err := readServeFile(c.name)
	if err != nil {
		return nil, nil, err
	}
	if file.State == "" {
		file.State = c.inUse.State
	}
	exports, err := c.exports(s, file)
	return file, exports, err
}

// shown is the directory, and the name that it is mounted by if that is another.
func (e *exportEntry) shown() string {
	if e.Name == "" || e.Name == e.Path {
		return e.Path
	}
	return e.Path + " as " + e.Name
}

// changes describes what a reload has changed, and what it could not change.
func changes(old, now *serveFile) (lines []string) {
	named := func(all []exportEntry) map[string]exportEntry {
		m := make(map[string]exportEntry)
		for _, e := range all {
			m[e.Name+"\x00"+e.Path] = e
		}
		return m
	}
	before, after := named(old.Exports), named(now.Exports)
	for key, e := range after {
		switch was, ok := before[key]; {
		case !ok:
			lines = append(lines, fmt.Sprintf("serving %s", e.shown()))
		case !reflect.DeepEqual(was, e):
			lines = append(lines, fmt.Sprintf("serving %s by other rules", e.shown()))
		}
	}
	for key, e := range before {
		if _, ok := after[key]; !ok {
			lines = append(lines, fmt.Sprintf("no longer serving %s", e.shown()))
		}
	}
	slices.Sort(lines)
	o, n := *old, *now
	o.Exports, n.Exports = nil, nil
	if !reflect.DeepEqual(o, n) {
		lines = append(lines, "what has changed outside of [[export]] takes a restart")
	}
	if len(lines) == 0 {
		lines = []string{"nothing has changed"}
	}
	return lines
}
