// This file is the configuration file of weft serve.

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/pelletier/go-toml/v2"

	"github.com/weft-rdma/weft/cmd/weft/internal/fileserver"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/folder"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/origin"
)

// maxServeFile is the longest configuration file, in octets.
const maxServeFile = 1 << 20

// A serveFile is what a configuration file says: see packaging/etc/serve.toml.
type serveFile struct {
	Listen      []address `toml:"listen"`
	TCP         []address `toml:"tcp"`
	PortMap     portMap   `toml:"portmap"`
	State       string    `toml:"state"`
	AllowOthers bool      `toml:"allow-others"`

	TLS *struct {
		Cert   string `toml:"cert"`
		Key    string `toml:"key"`
		CA     string `toml:"ca"`
		KeyLog string `toml:"keylog"`
	} `toml:"tls"`

	Exports []exportEntry `toml:"export"`

	dir string // of the file, which relative paths of exports are of
}

// An exportEntry is a table [[export]].
type exportEntry struct {
	Path        string        `toml:"path"`
	Name        string        `toml:"name"`
	Allow       []allowEntry  `toml:"allow"`
	ReadOnly    bool          `toml:"read-only"`
	Squash      squashEntry   `toml:"squash"`
	SquashFor   []squashEntry `toml:"squash-for"`
	Async       bool          `toml:"async"`
	Insecure    bool          `toml:"insecure"`
	XprtSec     xprtsecEntry  `toml:"xprtsec"`
	Bandwidth   sizeEntry     `toml:"bandwidth"`
	Connections *int          `toml:"connections"`
	ClientConns *int          `toml:"client-connections"`
}

// Values that are checked where they stand, so that errors have their line.
type (
	address    struct{ text string }
	portMap    struct{ fileserver.PortMap }
	allowEntry struct {
		text    string
		network mount.Allow // one or none
		name    []origin.Name
	}
	squashEntry struct {
		given  bool
		squash folder.Squash
		name   []origin.Name // one or none
	}
	xprtsecEntry struct {
		given bool
		set   mount.XprtSec
	}
	sizeEntry struct{ octets int64 }
)

func (a *address) UnmarshalText(text []byte) error {
	_, port, err := net.SplitHostPort(string(text))
	if err != nil || port == "" {
		return fmt.Errorf("%q: expected HOST:PORT, or :PORT for all addresses", text)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("%q: %q is no port", text, port)
	}
	a.text = string(text)
	return nil
}

func (p *portMap) UnmarshalText(text []byte) error { return p.Set(string(text)) }

func (a *allowEntry) UnmarshalText(text []byte) error {
	list, names, err := allowed{string(text)}.parse()
	*a = allowEntry{string(text), list, names}
	return unflagged(err)
}

func (s *squashEntry) UnmarshalText(text []byte) error {
	squash, special, err := parseSquash([]string{string(text)})
	*s = squashEntry{given: true, squash: squash}
	for _, one := range special {
		s.squash, s.name = one.Squash, append(s.name, one.Name)
	}
	return unflagged(err)
}

func (x *xprtsecEntry) UnmarshalText(text []byte) (err error) {
	x.given = true
	x.set, err = mount.ParseXprtSec(string(text))
	return err
}

func (s *sizeEntry) UnmarshalText(text []byte) error {
	digits := strings.TrimRight(string(text), "KMGB")
	factor, ok := map[string]int64{"": 1, "B": 1, "K": 1 << 10, "KB": 1 << 10, "M": 1 << 20, "MB": 1 << 20, "G": 1 << 30, "GB": 1 << 30}[string(text[len(digits):])]
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n < 1 || n > math.MaxInt32 {
		return fmt.Errorf("%q: expected octets a second, such as 500K, 100M or 2G", text)
	}
	s.octets = n * factor
	return nil
}

// unflagged is an error of a flag, without the name of the flag.
func unflagged(err error) error {
	if err == nil {
		return nil
	}
	_, text, ok := strings.Cut(err.Error(), ": ")
	if !ok {
		text = err.Error()
	}
	return errors.New(text)
}

// readServeFile reads a configuration file. Its errors have lines FILE:LINE: what is wrong.
func readServeFile(name string) (*serveFile, error) {
	f, err := openAtOnce(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// It is read again at each reload.
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s: it is no regular file", name))
	}
	if err := onlyOursToChange(f); err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, maxServeFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxServeFile:
		return nil, fmt.Errorf("%s: longer than %d octets", name, maxServeFile)
	}
	c, err := parseServeFile(text)
	if err != nil {
		return nil, located(name, err)
	}
	c.dir, err = filepath.Abs(filepath.Dir(name))
	return c, err
}

func parseServeFile(text []byte) (*serveFile, error) {
	c := new(serveFile)
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // of some editors
	d := toml.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return c, d.Decode(c)
}

// located puts the name of the file and the line before an error of the decoder.
func located(name string, err error) error {
	var unknown *toml.StrictMissingError
	var wrong *toml.DecodeError
	switch {
	case errors.As(err, &unknown):
		var all []error
		for _, e := range unknown.Errors {
			row, _ := e.Position()
			all = append(all, fmt.Errorf("%s:%d: there is no key %s", name, row, strings.Join(e.Key(), ".")))
		}
		return errors.Join(all...)
	case errors.As(err, &wrong):
		row, _ := wrong.Position()
		text := strings.TrimPrefix(wrong.Error(), "toml: ")
		if kind, _, ok := strings.Cut(text, " into "); ok { // a type of Go, which says nothing to users
			text = "unexpected " + strings.TrimPrefix(kind, "cannot decode ")
		}
		if key := wrong.Key(); len(key) > 0 {
			text = strings.Join(key, ".") + ": " + text
		}
		return fmt.Errorf("%s:%d: %s", name, row, text)
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// exports returns the exports of the file. encrypted says that there is TLS, and authority
// that certificates of clients can be verified.
func (c *serveFile) exports(encrypted, authority bool) (all []fileserver.Export, err error) {
	if len(c.Exports) == 0 {
		return nil, errors.New("there is no [[export]]")
	}
	if c.Listen != nil && len(c.Listen) == 0 {
		return nil, errors.New("listen: it has no address; leave it out for " + serveAddr)
	}
	for key, list := range map[string][]address{"listen": c.Listen, "tcp": c.TCP} {
		for i, a := range list {
			if slices.Contains(list[:i], a) {
				return nil, fmt.Errorf("%s: %s is there twice", key, a.text)
			}
		}
	}
	for _, a := range c.TCP {
		if slices.Contains(c.Listen, a) && !strings.HasSuffix(a.text, ":0") { // which is any port
			return nil, fmt.Errorf("tcp: %s is in listen, too: NFS over RDMA and over TCP need ports of their own", a.text)
		}
	}
	for i := range c.Exports {
		x, err := c.export(&c.Exports[i], encrypted, authority)
		if err != nil {
			return nil, fmt.Errorf("export %d (%s): %w", i+1, c.Exports[i].Path, err)
		}
		all = append(all, x)
	}
	return all, fileserver.CheckExports(all)
}

func (c *serveFile) export(e *exportEntry, encrypted, authority bool) (x fileserver.Export, err error) {
	if e.Path == "" {
		return x, errors.New("path: missing")
	}
	root := filepath.Clean(e.Path)
	if !filepath.IsAbs(root) {
		root = filepath.Join(c.dir, root)
	}
	if e.Squash.given && mount.Personal() && e.Squash.squash != folder.SquashNone {
		return x, fmt.Errorf("squash: all callers act as %s; mapping them to other users takes root, on Linux", userName())
	}
	if err := checkName(e.Name); err != nil {
		return x, err
	}
	if e.Allow != nil && len(e.Allow) == 0 {
		return x, errors.New("allow: it is empty; leave it out if everybody may use the export, or leave out the export")
	}
	x = fileserver.Export{
		Name: path.Clean("/" + filepath.ToSlash(e.Name)),
		Files: folder.Config{
			Root: root, ReadOnly: e.ReadOnly, Squash: e.Squash.squash, Async: e.Async, StateDir: c.State,
		},
		Rules: fileserver.Rules{Insecure: e.Insecure, XprtSec: e.XprtSec.set},
		Quota: fileserver.Quota{Bandwidth: e.Bandwidth.octets},
	}
	if e.Name == "" {
		x.Name = filepath.ToSlash(x.Files.Root)
	}
	for _, q := range []struct {
		key   string
		given *int
		limit *int
	}{{"connections", e.Connections, &x.Quota.Connections}, {"client-connections", e.ClientConns, &x.Quota.ClientConnections}} {
		if q.given == nil {
			continue
		}
		if *q.given < 1 {
			return x, fmt.Errorf("%s: %d: expected more than 0; leave it out for no limit", q.key, *q.given)
		}
		*q.limit = *q.given
	}
	for _, a := range e.Allow {
		x.Allow, x.Names = append(x.Allow, a.network...), append(x.Names, a.name...)
	}
	for _, s := range e.SquashFor {
		if len(s.name) == 0 {
			return x, errors.New("squash-for: expected NAME=WHO, such as dns:host.example=none")
		}
		x.Files.SquashFor = append(x.Files.SquashFor, folder.SquashFor{Name: s.name[0], Squash: s.squash})
	}
	x.XprtSec, err = securityOf(e.XprtSec, encrypted, authority)
	if err == nil && len(x.Names)+len(x.Files.SquashFor) > 0 && !authority {
		err = errors.New("the names of callers are in certificates, which takes [tls] with ca")
	}
	return x, err
}

// checkName checks the name of an export, by which clients mount it. It may be missing.
func checkName(name string) error {
	switch {
	case name == "":
		return nil
	case !strings.HasPrefix(name, "/"):
		return fmt.Errorf("name: %q: expected a path that begins with /", name)
	case len(name) > nfs.MaxMountPath:
		return fmt.Errorf("name: it has %d octets, of which clients can mount %d", len(name), nfs.MaxMountPath)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("name: %q: there is a control character in it", name)
	}
	for element := range strings.SplitSeq(name, "/") {
		if element == "." || element == ".." {
			return fmt.Errorf("name: %q: expected no . and .. in it", name)
		}
	}
	return nil
}

// securityOf returns what an export accepts: by default only what is encrypted, if there is
// TLS, and only verified callers, if they can be.
func securityOf(x xprtsecEntry, encrypted, authority bool) (mount.XprtSec, error) {
	mutual := mount.XprtSecOf(origin.MutualTLS)
	switch {
	case !encrypted && (!x.given || x.set == mount.XprtSecOf(origin.Plain)):
		return 0, nil
	case !encrypted:
		return 0, errors.New("xprtsec: tls and mtls take a table [tls]")
	case x.given && x.set == mutual && !authority:
		return 0, errors.New("xprtsec: mtls takes ca in [tls]")
	case x.given:
		return x.set, nil
	case authority:
		return mutual, nil
	}
	return mount.XprtSecOf(origin.TLS, origin.MutualTLS), nil
}

// flags returns the flags of weft serve that say the same as the file.
func (c *serveFile) flags(s *serve) {
	s.listen, s.tcp = serveAddr, ""
	if len(c.Listen) > 0 {
		s.listen = c.Listen[0].text
	}
	switch {
	case len(c.TCP) > 0:
		s.tcp = c.TCP[0].text
	case c.TCP != nil:
		s.tcp = "off"
	}
	if c.PortMap.PortMap != "" {
		s.portMap = c.PortMap.PortMap
	}
	if c.State == "" {
		c.State = s.state
	}
	s.allowOthers = c.AllowOthers
	if c.TLS != nil {
		s.tls.on = true
		s.tls.cert, s.tls.key, s.tls.ca, s.tls.keyLog = c.TLS.Cert, c.TLS.Key, c.TLS.CA, c.TLS.KeyLog
	}
}

// overlaps describes exports that lie in another one, where the rules of that apply, too.
func overlaps(all []fileserver.Export) (lines []string) {
	real := func(root string) string {
		if r, err := filepath.EvalSymlinks(root); err == nil {
			return r
		}
		return root
	}
	for _, inner := range all {
		for _, outer := range all {
			rest, err := filepath.Rel(real(outer.Files.Root), real(inner.Files.Root))
			if outer.Name == inner.Name || err != nil || rest == ".." || strings.HasPrefix(rest, ".."+string(filepath.Separator)) {
				continue
			}
			lines = append(lines, fmt.Sprintf("%s is in %s: who may use export %s reaches it, too", inner.Files.Root, outer.Files.Root, outer.Name))
		}
	}
	return lines
}

// rest returns the addresses after the first.
func rest(all []address) (more []string) {
	for _, a := range all[min(1, len(all)):] {
		more = append(more, a.text)
	}
	return more
}
