// Package quote shows names of files to people, so that a name gives no orders to a
// terminal and looks like nothing but a name.
package quote

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain reports whether a name can be shown as it is: UTF-8 of letters, marks, digits,
// signs and spaces, with nothing in it that controls or is not seen.
func Plain(name string) bool {
	for i, r := range name {
		if !visible(name[i:], r) {
			return false
		}
	}
	return true
}

// visible reports whether the character r, with which rest begins, is shown. An octet
// that is not of UTF-8 is none.
func visible(rest string, r rune) bool {
	return unicode.IsGraphic(r) && !(r == utf8.RuneError && !strings.HasPrefix(rest, string(utf8.RuneError)))
}

// Name is the name for a message: as it is, if it is [Plain], and otherwise as [Shell]
// has it.
func Name(name string) string {
	if Plain(name) {
		return name
	}
	return Shell(name)
}

// Shell is the name as GNU ls shows it on a terminal (the quoting style shell-escape):
// as it is, if a shell would take it so, and otherwise in quotes, from which it can be
// pasted into a shell. Octets that are not shown are escaped: 'a'$'\n”b'.
func Shell(name string) string {
	if !Plain(name) {
		return escape(name)
	}
	rest := name // without what is special at the start alone
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

// special are the characters that mean something to a shell wherever they are.
func special(r rune) bool { return strings.ContainsRune(" !\"$&'()*;<=>?[\\^`|", r) }

// inSingle are the characters that GNU ls has in single quotes only.
func inSingle(r rune) bool {
	return r < utf8.RuneSelf && !strings.ContainsRune(" %+,-./:@]_'", r) &&
		!(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z')
}

// escapes are those that have names of their own.
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
