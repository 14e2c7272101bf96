// Package conformance holds the requirements of the specifications that Weft
// implements, and the record of which test guards which of them.
//
// A table (requirements/*.tsv) has a row for each requirement. A test claims the rows
// that it would fail for, in the last lines of its doc comment:
//
//	// Claims: MPA-4.2-1 MPA-4.2-2
//
// A row that nothing in this repository could break is excluded, with a reason, in
// excluded.tsv. The tests of this package fail if a MUST, a SHOULD, or the opposite of
// one, or a definition of a table that accounts for those (accountable in table.go), is
// neither claimed nor excluded, if a claim names no row or stands where go test
// does not run it, and if the pages in docs/conformance are stale.
//
// Mutations (mutations/*.txt) break rules on purpose, to see which claiming tests
// fail. The command mutate runs them and writes mutated.tsv; survivors.tsv explains
// the mutations that no claiming test noticed.
//
// To add a specification, add its table to requirements/ and a line to the list in
// table.go.
package conformance

//go:generate go run ./gen
