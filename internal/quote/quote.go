// Package quote makes names of files safe to show to people: they can't control a
// terminal, and can't be taken for anything else.
package quote

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain reports whether a name can be shown as it is: valid UTF-8 of graphic characters
// and spaces only.
func Plain(name string) bool {
	for i, r := range name {
		if !visible(name[i:], r) {
			return false
		}
	}
	return true
}

// visible reports whether r, the first character of rest, is graphic. An octet that is
// not valid UTF-8 is not.
func visible(rest string, r rune) bool {
	return unicode.IsGraphic(r) && !(r == utf8.RuneError && !strings.HasPrefix(rest, string(utf8.RuneError)))
}

// Name returns the name for a message: as it is if it is [Plain], otherwise quoted by
// [Shell].
func Name(name string) string {
	if Plain(name) {
		return name
	}
	return Shell(name)
}

// Shell returns the name as GNU ls shows it on a terminal (quoting style shell-escape):
// as it is if a shell would take it literally, otherwise quoted, so that it can be
// pasted into a shell. Octets that are not graphic are escaped: 'a'$'\n”b'.
func Shell(name string) string {
	if !Plain(name) {
		return escape(name)
	}
	rest := name // without what is special only at the start
	if name != "" && (name[0] == '#' || name[0] == '~') {
		rest = name[1:]
	}
	switch {
	case name == rest && name != "" && name != "{" && name != "}" && !strings.ContainsFunc(name, special):
		return name
	case strings.Contains(name, "'") && !strings.ContainsFunc(rest, inSingle):
		return `"` + name + `"`
	}
	return escape(name)
}

// special reports whether r is special to a shell wherever it is.
func special(r rune) bool { return strings.ContainsRune(" !\"$&'()*;<=>?[\\^`|", r) }

// inSingle reports whether GNU ls puts r into single quotes only.
func inSingle(r rune) bool {
	return r < utf8.RuneSelf && !strings.ContainsRune(" %+,-./:@]_'", r) &&
		!(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z')
}

// escapes are the octets that have an escape of their own.
var escapes = map[byte]string{'\a': `\a`, '\b': `\b`, '\t': `\t`, '\n': `\n`, '\v': `\v`, '\f': `\f`, '\r': `\r`}

// escape quotes what is visible in '...', and the rest in $'...'.
func escape(name string) string {
	var b strings.Builder
	b.WriteByte('\'')
	open, escaping := true, false
	for i := 0; i < len(name); {
		r, size := utf8.DecodeRuneInString(name[i:])
		part := name[i : i+size]
		i += size
		if visible(part, r) {
			if escaping {
				b.WriteByte('\'') // ends $'...'
				escaping = false
			}
			if !open {
				b.WriteByte('\'')
				open = true
			}
			if r == '\'' {
				b.WriteString(`'\'`)
			}
			b.WriteString(part)
			continue
		}
		if !escaping {
			if open {
				b.WriteByte('\'')
				open = false
			}
			b.WriteString(`$'`)
			escaping = true
		}
		for _, c := range []byte(part) {
			if e := escapes[c]; e != "" {
				b.WriteString(e)
			} else {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		}
	}
	b.WriteByte('\'')
	return b.String()
}
