// This file colors source text.

package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/chroma/v2"
	chromahtml "github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
)

// highlight returns source text as HTML. Its language is that of the file's name. Lines
// have numbers that can be linked to, #L1 and so on, if asked for.
func highlight(name, text string, numbered bool) (string, error) {
	lexer := lexers.Match(name)
	if lexer == nil {
		lexer = lexers.Fallback
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, text)
	if err != nil {
		return "", err
	}
	options := []chromahtml.Option{chromahtml.WithClasses(true)}
	if numbered {
		options = append(options, chromahtml.WithLineNumbers(true), chromahtml.WithLinkableLineNumbers(true, "L"))
	}
	var b strings.Builder
	err = chromahtml.New(options...).Format(&b, styles.Get("github"), tokens)
	return b.String(), err
}

// writeColors writes the style sheet of the colors, for light and dark screens.
func (s *Site) writeColors() error {
	var b strings.Builder
	f := chromahtml.New(chromahtml.WithClasses(true))
	for scheme, style := range map[string]string{"light": "github", "dark": "github-dark"} {
		fmt.Fprintf(&b, "@media (prefers-color-scheme: %s) {\n", scheme)
		if err := f.WriteCSS(&b, styles.Get(style)); err != nil {
			return err
		}
		b.WriteString("}\n")
	}
	return s.write("static/colors.css", b.String())
}
