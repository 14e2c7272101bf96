package files

import (
	"strings"
	"testing"
)

func TestURLsNameFilesOnServers(t *testing.T) {
	for in, want := range map[string]URL{
		"nfs://host/a/b":             {"host", 0, "/a/b"},
		"nfs://host":                 {"host", 0, "/"},
		"nfs://host/":                {"host", 0, "/"},
		"nfs://host:2049/a/":         {"host", 2049, "/a/"},
		"nfs://192.0.2.1:1/x":        {"192.0.2.1", 1, "/x"},
		"nfs://[2001:db8::1]/x":      {"2001:db8::1", 0, "/x"},
		"nfs://[2001:db8::1]:5/x":    {"2001:db8::1", 5, "/x"},
		"nfs://host//a/./../b":       {"host", 0, "/b"},
		"nfs://host/../../etc":       {"host", 0, "/etc"},
		"nfs://host/a%20b%FF%25?#&+": {"host", 0, "/a b\xff%?#&+"},
	} {
		got, err := ParseURL(in)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", in, got, err, want)
		}
	}
	for in, says := range map[string]string{
		"host/a":              "not a valid URL",
		"/a/b":                "not a valid URL",
		"http://host/a":       "not a valid URL",
		"nfs:///a":            "not a valid host",
		"nfs://:1/a":          "not a valid host",
		"nfs://user@host/a":   "not a valid host",
		"nfs://host:0/a":      "expected 1 to 65535",
		"nfs://host:65536/a":  "expected 1 to 65535",
		"nfs://host:port/a":   "expected 1 to 65535",
		"nfs://2001:db8::1/a": "brackets",
		"nfs://host/%zz":      "%25",
		"nfs://host/a%00b":    "NUL",
	} {
		if got, err := ParseURL(in); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %+v, %v, want an error with %q", in, got, err, says)
		}
	}
}

func TestTheServerOfAURLIsItsBeginning(t *testing.T) {
	for _, s := range []string{"nfs://host", "nfs://host:5", "nfs://[2001:db8::1]", "nfs://[2001:db8::1]:5"} {
		u, err := ParseURL(s + "/x/y")
		if err != nil || u.Server() != s {
			t.Errorf("%s: %s, %v", s, u.Server(), err)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	f.Add("nfs://[2001:db8::1]:5/a%20b/")
	f.Fuzz(func(t *testing.T, s string) {
		u, err := ParseURL(s)
		if err != nil {
			return
		}
		again, err := ParseURL(u.Server() + strings.ReplaceAll(u.Path, "%", "%25"))
		if err != nil || again != u {
			t.Errorf("%q is %+v, which is %+v, %v", s, u, again, err)
		}
	})
}

func TestURLsThatEndInDotsAreKnown(t *testing.T) {
	for in, want := range map[string]bool{
		"nfs://host/a/..":     true,
		"nfs://host/a/.":      true,
		"nfs://host/a/..//":   true,
		"nfs://host/..":       true,
		"nfs://host/a/%2E%2e": true,
		"nfs://host/a%2F..":   true,
		"nfs://host/a/../b":   false,
		"nfs://host/a/...":    false,
		"nfs://host/.a":       false,
		"nfs://host/a..":      false,
		"nfs://host/":         false,
		"nfs://..":            false,
	} {
		if got := EndsInDots(in); got != want {
			t.Errorf("%s: %v", in, got)
		}
	}
}
