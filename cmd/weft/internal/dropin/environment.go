package dropin

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Options are what the user asks of the device.
type Options struct {
	Device      string // its name
	Persona     string // rnic or rc
	PCAP        string // file that connections are recorded in
	ListenRange string // of ports that are given out
	Verbose     bool   // one line at exit
	Debug       bool   // reasons of what is refused
	Patient     bool   // a message waits for a receive
	Plain       bool   // a peer is not told that this is Weft
	NoCRC       bool
	TLS         TLS
	Congestion  string // congestion control of all connections; empty is the system's
	Preload     bool   // LD_PRELOAD in place of LD_LIBRARY_PATH
	AlsoHost    string // libibverbs of the system, whose devices are listed, too; or empty
	View        string // folder for the files of /sys and /dev that are shown, or empty
}

// TLS says how connections are encrypted. Files have absolute names.
type TLS struct {
	On                          bool
	Cert, Key, CA, Name, KeyLog string // as the flags of the command
}

// Check returns an error if the loader would take the folder's name for something else: it
// ends names at some characters, and expands what begins with a dollar.
func (o *Options) Check(dir string) error {
	special := ":;$"
	if o.Preload || o.View != "" {
		special += " \t\n"
	}
	if strings.ContainsAny(dir, special) {
		return fmt.Errorf("the loader cannot be given a library in %q, because of its name: set XDG_CACHE_HOME, or --library, to another folder", dir)
	}
	return nil
}

// Environment is env with what makes a program use the library in dir.
func (o *Options) Environment(env []string, dir string) []string {
	if o.Preload {
		env = prepend(env, "LD_PRELOAD", filepath.Join(dir, Library))
	} else {
		env = prepend(env, "LD_LIBRARY_PATH", dir)
	}
	if o.View != "" {
		env = prepend(env, "LD_PRELOAD", filepath.Join(dir, View))
	}
	for _, v := range [...]struct {
		name, value string
	}{
		{"WEFT_DEVICE", o.Device}, {"WEFT_PERSONA", o.Persona}, {"WEFT_PCAP", o.PCAP}, {"WEFT_LISTEN_RANGE", o.ListenRange},
		{"WEFT_VERBOSE", flag(o.Verbose)}, {"WEFT_DEBUG", flag(o.Debug)}, {"WEFT_PATIENT", flag(o.Patient)},
		{"WEFT_PLAIN", flag(o.Plain)}, {"WEFT_VIEW", o.View}, {"WEFT_ALSO_HOST", o.AlsoHost}, {"WEFT_CONGESTION", o.Congestion},
		{"WEFT_TLS", flag(o.TLS.On)}, {"WEFT_TLS_CERT", o.TLS.Cert}, {"WEFT_TLS_KEY", o.TLS.Key}, {"WEFT_TLS_CA", o.TLS.CA},
		{"WEFT_TLS_NAME", o.TLS.Name}, {"WEFT_TLS_KEYLOG", o.TLS.KeyLog},
	} {
		if v.value != "" {
			env = set(env, v.name, v.value)
		}
	}
	if o.NoCRC {
		env = set(env, "WEFT_CRC", "off")
	}
	return env
}

func flag(on bool) string {
	if on {
		return "1"
	}
	return ""
}

// set gives a variable a value.
func set(env []string, name, value string) []string {
	out := make([]string, 0, len(env)+1)
	for _, v := range env {
		if !strings.HasPrefix(v, name+"=") {
			out = append(out, v)
		}
	}
	return append(out, name+"="+value)
}

// prepend puts a path in front of those that a variable has, once.
func prepend(env []string, name, path string) []string {
	rest := ""
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			rest = value
		}
	}
	all := path
	for p := range strings.SplitSeq(rest, ":") {
		if p != "" && p != path {
			all += ":" + p
		}
	}
	return set(env, name, all)
}
