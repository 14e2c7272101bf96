// Package importrule holds the rule of the layers: a package imports only
// packages below it, and programs that import the core inherit nothing but the
// standard library and golang.org/x/sys. Its test applies the rule to every
// package of the module; docs/architecture.md draws the layers.
package importrule
