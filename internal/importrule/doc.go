// Package importrule holds the rule of the layers: a package imports only packages
// below it, and programs that import the core inherit only the standard library and
// golang.org/x/sys. Every directory of the module has a rule. The tests apply the rules to
// each package, and ask the go command what a program inherits; docs/architecture.md
// draws the layers.
package importrule
