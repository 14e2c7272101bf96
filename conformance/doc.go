// Package conformance keeps the requirements of the specifications that Weft
// implements, and the account of which test guards which of them.
//
// A table (requirements/*.tsv) has one row a requirement. A test claims the
// rows that it would fail for in the last lines of its doc comment:
//
//	// Claims: MPA-4.2-1 MPA-4.2-2
//
// A row that nothing in this repository could break is excluded, with a
// reason, in excluded.tsv. The package's own test fails while a MUST or a MUST
// NOT is neither claimed nor excluded, while a claim names no row or sits
// where go test does not run it, and while docs/conformance.md is stale.
//
// Mutations (mutations/*.txt) break rules on purpose, to see which claims notice.
// The command mutate runs them and writes mutated.tsv; survivors.tsv explains what
// no claiming test noticed.
//
// To add a specification, put its table into requirements/ and one line into
// the list in table.go.
package conformance

//go:generate go run ./gen
