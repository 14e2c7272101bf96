// This file lists the places of the file system that a confined server uses.

package main

import (
	"debug/elf"
	"os"
	"path/filepath"
	"strings"

	"github.com/weft-rdma/weft/cmd/weft/internal/confine"
)

// systemPlaces are what every server uses: the names of users and hosts, certificates of
// the system, time zones, the owners of sockets, and limits of the process. Directories are
// named where files are replaced by new ones of the same name, as /etc/passwd is.
func systemPlaces() []confine.Rule {
	places := []confine.Rule{{Path: "/dev/null", Access: confine.Change}, {Path: "/proc/self/exe", Access: confine.Execute}}
	for _, path := range []string{
		"/etc", "/usr/share", "/usr/local/share/ca-certificates", "/proc", "/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage",
		"/run/systemd/resolve", "/run/systemd/userdb", "/run/nscd", "/run/resolvconf", "/run/NetworkManager", "/var/lib/sss",
	} {
		places = append(places, confine.Rule{Path: path})
	}
	if interpreter := interpreterOf("/proc/self/exe"); interpreter != "" {
		for _, dir := range []string{filepath.Dir(interpreter), "/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"} {
			places = append(places, confine.Rule{Path: dir, Access: confine.Execute})
		}
	}
	if dir := os.Getenv("GOCOVERDIR"); dir != "" {
		places = append(places, confine.Rule{Path: dir, Access: confine.Change})
	}
	return places
}

// interpreterOf returns the loader of a program with shared libraries, "" for a static one.
func interpreterOf(path string) string {
	f, err := elf.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	section := f.Section(".interp")
	if section == nil {
		return ""
	}
	b, err := section.Data()
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(b), "\x00")
}

// places are the files of a recording. It is made here, so that only this file of its
// directory has to be open to changes.
func (o *options) places() ([]confine.Rule, error) {
	if o.pcap == "" {
		return nil, nil
	}
	return filePlace(o.pcap)
}

// places are those of what observes the command.
func (o *observation) places() (places []confine.Rule, err error) {
	if o.access != "" && o.access != "-" {
		if places, err = filePlace(o.access); err != nil {
			return nil, err
		}
	}
	if path, ok := strings.CutPrefix(o.metrics, "unix:"); ok {
		places = append(places, confine.Rule{Path: filepath.Dir(path), Access: confine.Change})
	}
	return places, nil
}

// places are the directories of certificates, because changed ones are new files, and the
// file of secrets.
func (e *encryption) places() (places []confine.Rule, err error) {
	if !e.wanted() {
		return nil, nil
	}
	files, err := e.files()
	if err != nil {
		return nil, err
	}
	if files.KeyLog != "" {
		if places, err = filePlace(files.KeyLog); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{files.Cert, files.Key, files.CA} {
		if name == "" {
			continue
		}
		places = append(places, confine.Rule{Path: filepath.Dir(name)})
		if real, err := filepath.EvalSymlinks(name); err == nil {
			places = append(places, confine.Rule{Path: filepath.Dir(real)})
		}
	}
	return places, nil
}

// filePlace is a file that is written. It is made if there is none, for this user alone.
func filePlace(path string) ([]confine.Rule, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return []confine.Rule{{Path: path, Access: confine.Change}}, f.Close()
}

// statePlace is the directory of state, which is made if there is none. Where it can't be
// used, because it is in the directory that is served, say, the server says so.
func statePlace(dir, served string) []confine.Rule {
	abs, err := filepath.Abs(dir)
	if dir == "" || err != nil {
		return nil
	}
	if rest, err := filepath.Rel(served, abs); err == nil && filepath.IsLocal(rest) {
		return nil
	}
	_ = os.MkdirAll(abs, 0o700)
	return []confine.Rule{{Path: abs, Access: confine.Change}}
}

// placesOf joins the places of parts of a server with those of the system.
func placesOf(own []confine.Rule, parts ...func() ([]confine.Rule, error)) (*confine.Rules, error) {
	all := append(systemPlaces(), own...)
	for _, part := range parts {
		places, err := part()
		if err != nil {
			return nil, err
		}
		all = append(all, places...)
	}
	return confine.Look(all)
}
