package quote

import (
	"os/exec"
	"strings"
	"testing"
)

// What GNU ls 9.1 shows for these names with --quoting-style=shell-escape.
func TestShellQuotesAsGNUDoes(t *testing.T) {
	for _, tc := range []struct{ name, want string }{
		{"\x01\x02a1", `''$'\001\002''a1'`},
		{"\x0a", `''$'\n'`},
		{"\x0aa", `''$'\n''a'`},
		{"\x1b[2J", `''$'\033''[2J'`},
		{"!", `'!'`},
		{"!'", `'!'\'''`},
		{"\x22", `'"'`},
		{"#'", `"#'"`},
		{"#a", `'#a'`},
		{"%", `%`},
		{"%'", `"%'"`},
		{"&;|<>()", `'&;|<>()'`},
		{"'", `"'"`},
		{"''", `"''"`},
		{"'\xc3\xa9", `"'é"`},
		{"+,-.:@]_", `+,-.:@]_`},
		{"-rf *", `'-rf *'`},
		{"=", `'='`},
		{"?", `'?'`},
		{"[", `'['`},
		{"\x5c", `'\'`},
		{"]", `]`},
		{"^", `'^'`},
		{"`x`", "'`x`'"},
		{"a\x0a", `'a'$'\n'`},
		{"a\x0ab", `'a'$'\n''b'`},
		{"a b's", `"a b's"`},
		{"a\x22b'c", `'a"b'\''c'`},
		{"a#", `a#`},
		{"a#'b", `'a#'\''b'`},
		{"a'b'c", `"a'b'c"`},
		{"a=b", `'a=b'`},
		{"a=b'c", `'a=b'\''c'`},
		{"a?b", `'a?b'`},
		{"a[0]", `'a[0]'`},
		{"a\x5cb", `'a\b'`},
		{"a{", `a{`},
		{"a~", `a~`},
		{"caf\xc3\xa9", `café`},
		{"caf\xe9", `'caf'$'\351'`},
		{"it's", `"it's"`},
		{"it's $x", `'it'\''s $x'`},
		{"my file", `'my file'`},
		{"plain", `plain`},
		{"tab\x09new\x0a\x0ax", `'tab'$'\t''new'$'\n\n''x'`},
		{"{", `'{'`},
		{"{'}", `'{'\''}'`},
		{"{}", `{}`},
		{"}", `'}'`},
		{"~", `'~'`},
		{"~'", `"~'"`},
		{"\x7f", `''$'\177'`},
		{"\xc2\x9b2J", `''$'\302\233''2J'`},
		{"\xff\xfe", `''$'\377\376'`},
		{"", `''`},
	} {
		if got := Shell(tc.name); got != tc.want {
			t.Errorf("%q is shown as %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestMessagesHaveNamesOnOneLine(t *testing.T) {
	for name, want := range map[string]string{
		"":                        "",
		"a file of mine":          "a file of mine",
		"caf\u00e9 \u65e5\u3000":  "caf\u00e9 \u65e5\u3000",
		"\ufffd is a character":   "\ufffd is a character",
		"two\nlines":              `'two'$'\n''lines'`,
		"\x1b]0;title\a":          `''$'\033'']0;title'$'\a'`,
		"right-to-left \u202etxt": `'right-to-left '$'\342\200\256''txt'`,
		"caf\xe9":                 `'caf'$'\351'`,
	} {
		if got := Name(name); got != want {
			t.Errorf("%q is shown as %q, want %q", name, got, want)
		}
	}
}

// FuzzShell has a shell read what is shown, where there is one that knows $'...'.
func FuzzShell(f *testing.F) {
	for _, name := range []string{"plain", "it's\n", "a'\x01b", "\x80'", "''\n''", "\\n", "-n", "$(x)", "\xff\n1"} {
		f.Add(name)
	}
	bash, err := exec.LookPath("bash")
	f.Fuzz(func(t *testing.T, name string) {
		shown := Shell(name)
		if !Plain(shown) {
			t.Errorf("%q is shown as %q", name, shown)
		}
		if err != nil {
			return
		}
		if strings.ContainsAny(name, "\x00{") {
			return // no name has the one; braces are left alone, as by GNU
		}
		out, err := exec.CommandContext(t.Context(), bash, "-c", "printf %s "+shown).Output()
		if err != nil || string(out) != name {
			t.Errorf("%q is shown as %s, which a shell reads as %q (%v)", name, shown, out, err)
		}
	})
}
