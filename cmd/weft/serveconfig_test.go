package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/cmd/weft/internal/fileserver"
	"github.com/weft-rdma/weft/nfs/folder"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/origin"
)

// The file that packages install is right as it is, and with all of its examples.
func TestTheExampleOfAConfigurationIsRight(t *testing.T) {
	text, err := os.ReadFile("../../packaging/etc/serve.toml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := parseServeFile(text)
	if err != nil {
		t.Fatal(located("serve.toml", err))
	}
	all, err := c.exports(false, false)
	if err != nil || len(all) != 1 || !all[0].Files.ReadOnly {
		t.Errorf("as it is: %+v, %v", all, err)
	}

	text = regexp.MustCompile(`(?m)^#(\S+ = |\[)`).ReplaceAll(text, []byte("$1"))
	if c, err = parseServeFile(text); err != nil {
		t.Fatal(located("serve.toml", err))
	}
	if mount.Personal() {
		c.Exports[0].Squash.given = false // it takes root
	}
	all, err = c.exports(true, true)
	if err != nil {
		t.Fatal(err)
	}
	x := all[0]
	want := fileserver.Quota{Connections: 64, ClientConnections: 8, Bandwidth: 100 << 20}
	if x.Name != "/srv" || len(x.Allow) != 1 || len(x.Names) != 1 || len(x.Files.SquashFor) != 1 || x.Quota != want || !x.Files.ReadOnly || x.XprtSec != mount.XprtSecOf(origin.TLS, origin.MutualTLS) {
		t.Errorf("with its examples: %+v", x)
	}
	if c.TLS == nil || len(c.Listen) != 1 || len(c.TCP) != 1 || c.PortMap.PortMap != fileserver.PortMapAuto {
		t.Errorf("with its examples: %+v", c)
	}
	for key := range strings.SplitSeq("listen tcp portmap state allow-others cert key ca keylog path name read-only allow squash squash-for xprtsec insecure async bandwidth connections client-connections", " ") {
		if !regexp.MustCompile(`(?m)^` + key + ` = `).Match(text) {
			t.Errorf("the example has no line for %s", key)
		}
	}
}

func TestValuesOfAConfigurationAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		`listen = ["127.0.0.1"]`:                      "serve.toml:1: listen: ",
		`portmap = "yes"`:                             "serve.toml:1: portmap: expected auto",
		"\n[[export]]\npath = 7":                      "serve.toml:3: export.path: ",
		"[[export]]\nbandwidth = \"-1M\"":             "expected octets a second",
		"[[export]]\nbandwidth = \"4T\"":              "expected octets a second",
		"[[export]]\nxprtsec = \"ssl\"":               "none, tls and mtls",
		"[[export]]\nsquash = \"everybody\"":          "expected root, all or none",
		"[[export]]\nallow = [\"dns:\"]":              "serve.toml:2: ",
		"[[export]]\npath = \"/x\"\npath = \"/y\"":    "serve.toml:3: ",
		"listen = [":                                  "serve.toml:1: ",
		"listen = 5\n":                                "serve.toml:1: listen: unexpected TOML integer",
		"[[export]]\nread-only = \"yes\"":             "serve.toml:2: export.read-only: unexpected TOML string",
		"[[export]]\nallow = \"192.0.2.7\"":           "serve.toml:2: export.allow: unexpected TOML string",
		"[[export]]\nconnections = \"many\"":          "serve.toml:2: export.connections: unexpected TOML string",
		"[[exports]]\npath = \"/x\"":                  "serve.toml:1: there is no key exports",
		"[tls]\ncertificate = \"/etc/weft/cert.pem\"": "there is no key tls.certificate",
	} {
		if _, err := parseServeFile([]byte(text)); err == nil || !strings.Contains(located("serve.toml", err).Error(), want) {
			t.Errorf("%q: %v, want %q", text, located("serve.toml", err), want)
		}
	}
	for text, want := range map[string]string{
		"":           "there is no [[export]]",
		"[[export]]": "path: missing",
		"[[export]]\npath = \"/x\"\nconnections = -1":                              "connections: -1: expected more than 0",
		"[[export]]\npath = \"/x\"\nclient-connections = 0":                        "client-connections: 0: expected more than 0",
		"[[export]]\npath = \"/x\"\nallow = []":                                    "allow: it is empty",
		"[[export]]\npath = \"/x\"\nname = \"relative/..\"":                        `name: "relative/..": expected a path that begins with /`,
		"[[export]]\npath = \"/x\"\nname = \"/a/../b\"":                            "expected no . and ..",
		"[[export]]\npath = \"/x\"\nname = \"/a\\u001b[31m\"":                      "control character",
		"[[export]]\npath = \"/x\"\nname = \"/" + strings.Repeat("x", 1024) + "\"": "name: it has 1025 octets",
		"listen = []\n[[export]]\npath = \"/x\"":                                   "listen: it has no address",
		"listen = [\":1\"]\ntcp = [\":1\"]\n[[export]]\npath = \"/x\"":             "tcp: :1 is in listen, too",
		"[[export]]\npath = \"/x\"\nsquash-for = [\"root\"]":                       "squash-for: expected NAME=WHO",
		"[[export]]\npath = \"/x\"\nallow = [\"dns:host.example\"]":                "takes [tls] with ca",
		"[[export]]\npath = \"/x\"\n[[export]]\npath = \"/y\"\nname=\"/x\"":        "two exports have the name",
		"listen = [\":1\", \":1\"]\n[[export]]\npath = \"/x\"":                     "listen: :1 is there twice",
	} {
		c, err := parseServeFile([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.exports(false, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestAConfigurationMayHaveWhatEditorsWrite(t *testing.T) {
	c, err := parseServeFile([]byte("\ufefflisten = [\"127.0.0.1:0\"]\r\ntcp = [\"127.0.0.1:0\"]\r\n\r\n[[export]]\r\npath = \"/x\"\r\nname = \"/ä 😀/\"\r\n"))
	if err != nil {
		t.Fatal(located("serve.toml", err))
	}
	if all, err := c.exports(false, false); err != nil || all[0].Name != "/ä 😀" {
		t.Errorf("%+v, %v", all, err)
	}
}

// An export may be in another one by way of a symbolic link.
func TestExportsWithinOthersAreFoundThroughLinks(t *testing.T) {
	dir := t.TempDir()
	inner, link := filepath.Join(dir, "outer", "inner"), filepath.Join(dir, "link")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "outer"), link); err != nil {
		t.Skip(err)
	}
	exporting := func(root string) fileserver.Export {
		return fileserver.Export{Name: root, Files: folder.Config{Root: root}}
	}
	if lines := overlaps([]fileserver.Export{exporting(link), exporting(inner)}); len(lines) != 1 || !strings.HasPrefix(lines[0], inner+" is in "+link) {
		t.Errorf("%q", lines)
	}
}
