// This file parses URLs of files on NFS servers.

package files

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// Scheme begins a URL; anything else is a path on this machine.
const Scheme = "nfs://"

// A URL names a file on a server: nfs://host[:port]/path. Bytes of the path may
// be written as %XX, and a percent sign has to be.
type URL struct {
	Host string
	Port uint16 // 0: the transport's
	Path string // absolute, in the server's bytes; a slash at its end stays
}

// IsURL reports whether s names a file on a server.
func IsURL(s string) bool { return strings.HasPrefix(s, Scheme) }

// ParseURL reads a URL.
func ParseURL(s string) (URL, error) {
	rest, ok := strings.CutPrefix(s, Scheme)
	if !ok {
		return URL{}, fmt.Errorf("%q is not a valid URL; expected nfs://host/path", s)
	}
	authority, name, _ := strings.Cut(rest, "/")
	u := URL{Host: authority}
	if host, port, err := net.SplitHostPort(authority); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return URL{}, fmt.Errorf("%q: port %q: expected 1 to 65535", s, port)
		}
		u.Host, u.Port = host, uint16(n)
	} else if strings.HasPrefix(authority, "[") && strings.HasSuffix(authority, "]") {
		u.Host = authority[1 : len(authority)-1]
	} else if strings.Contains(authority, ":") {
		return URL{}, fmt.Errorf("%q: %q is not host:port; put an IPv6 address in brackets", s, authority)
	}
	if u.Host == "" || strings.ContainsAny(u.Host, "@[]") {
		return URL{}, fmt.Errorf("%q: %q is not a valid host", s, u.Host)
	}
	name, err := url.PathUnescape(name)
	if err != nil {
		return URL{}, fmt.Errorf("%q: %w (a percent sign is written %%25)", s, err)
	}
	if strings.ContainsRune(name, 0) {
		return URL{}, fmt.Errorf("%q: a path cannot contain NUL", s)
	}
	u.Path = path.Clean("/" + name)
	if strings.HasSuffix(name, "/") && u.Path != "/" {
		u.Path += "/"
	}
	return u, nil
}

// EndsInDots reports whether the path of a URL ends in . or .. before it is cleaned, so
// that it names a directory relative to another.
func EndsInDots(s string) bool {
	_, name, _ := strings.Cut(strings.TrimPrefix(s, Scheme), "/")
	name, err := url.PathUnescape(name)
	name = strings.TrimRight(name, "/")
	last := name[strings.LastIndexByte(name, '/')+1:]
	return err == nil && (last == "." || last == "..")
}

// Server returns the URL without the path.
func (u URL) Server() string {
	if u.Port == 0 {
		if strings.Contains(u.Host, ":") {
			return Scheme + "[" + u.Host + "]"
		}
		return Scheme + u.Host
	}
	return Scheme + net.JoinHostPort(u.Host, strconv.Itoa(int(u.Port)))
}
