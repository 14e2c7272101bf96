// The requirement tables: which there are, what a row has, and how they are read.

package conformance

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

//go:embed requirements/*.tsv excluded.tsv mutated.tsv survivors.tsv
var embedded embed.FS

// documents are the tables in the order of the report. The file of each is
// requirements/<name>.tsv.
var documents = []document{
	{"mpa", "RFC 5044, Marker PDU Aligned Framing for TCP"},
	{"mpa-enhanced", "RFC 6581, Enhanced RDMA Connection Establishment"},
	{"ddp", "RFC 5041, Direct Data Placement over Reliable Transports"},
	{"rdmap", "RFC 5040, A Remote Direct Memory Access Protocol"},
	{"rdmap-ext", "RFC 7306, RDMA Protocol Extensions"},
	{"rdmap-draft00", "draft-ietf-rddp-rdmap-00, where it differs from RFC 5040"},
	{"verbs-model", "RDMA Protocol Verbs Specification 1.0, sections 3 to 8: the model"},
	{"verbs-verbs", "RDMA Protocol Verbs Specification 1.0, sections 9 to 13: the verbs"},
	{"security", "RFC 5042, DDP/RDMAP Security"},
	{"rpcrdma", "RFC 5666, RDMA Transport for Remote Procedure Call"},
	{"rpcrdma-8166", "RFC 8166, 8167, 8267 and 8797, RPC-over-RDMA today, and what RFC 5667 had before"},
	{"rpctls", "RFC 9289, RPC with TLS"},
}

type document struct{ name, title string }

// A Level is how strongly a row binds: MUST, MUST NOT, SHOULD, SHOULD NOT, MAY,
// or DEF for a definition that other rows build on. The prefix HW- marks requirements on
// hardware.
type Level string

// hardware is the prefix of the levels of requirements on hardware.
const hardware = "HW-"

// Mandatory reports whether a row of this level is a MUST or a MUST NOT.
func (l Level) Mandatory() bool { return prefixed("MUST")(l) }

// Binding reports whether a row of this level has to be claimed or excluded: a
// MUST, a SHOULD, or the opposite of one.
func (l Level) Binding() bool { return l.Mandatory() || prefixed("SHOULD")(l) }

// Hardware reports whether a row of this level is a requirement on hardware.
func (l Level) Hardware() bool { return strings.HasPrefix(string(l), hardware) }

// definition reports whether a row of this level is a DEF.
func (l Level) definition() bool { return prefixed("DEF")(l) }

func (l Level) valid() bool {
	switch Level(strings.TrimPrefix(string(l), hardware)) {
	case "MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "DEF":
		return true
	}
	return false
}

// A Row is one requirement, in our words.
type Row struct {
	ID          string // unique among all tables: prefix, section, number
	Section     string // of the document
	Level       Level
	Requirement string
	TestIdea    string
}

// accountable are the prefixes of the ids whose definitions have to be claimed or
// excluded, too: in these tables all of them are.
var accountable = []string{"MPA-", "ME-", "DDP-", "R-", "X-", "D-", "V-", "S-", "P-"}

// Due reports whether the row has to be claimed or excluded: it is binding, or an
// accountable definition.
func (r Row) Due() bool {
	return r.Level.Binding() || r.Level.definition() && slices.ContainsFunc(accountable, func(p string) bool { return strings.HasPrefix(r.ID, p) })
}

// A Table has the requirements of one document, in its order.
type Table struct {
	Name  string // the file's name without .tsv
	Title string // the document
	Rows  []Row
}

// columns is the first line of every table.
var columns = []string{"id", "section", "level", "requirement", "test_idea"}

// Tables returns the tables of the repository in the order of the report. It fails if a
// table is missing, has a malformed row, or repeats an id.
func Tables() ([]Table, error) { return readTables(embedded, documents) }

func readTables(fsys fs.FS, docs []document) ([]Table, error) {
	var (
		tables []Table
		errs   []error
		where  = make(map[string]string) // id to the place that holds it
	)
	for _, d := range docs {
		path := "requirements/" + d.name + ".tsv"
		text, err := fs.ReadFile(fsys, path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		t := Table{Name: d.name, Title: d.title}
		errs = append(errs, readTSV(path, string(text), columns, func(place string, f []string) error {
			r := Row{ID: f[0], Section: f[1], Level: Level(f[2]), Requirement: f[3], TestIdea: f[4]}
			if first, ok := where[r.ID]; ok {
				return fmt.Errorf("id %s is also at %s", r.ID, first)
			}
			where[r.ID] = place
			if !r.Level.valid() {
				return fmt.Errorf("%s has level %q: expected MUST, MUST NOT, SHOULD, SHOULD NOT, MAY or DEF, with the prefix HW- for hardware", r.ID, r.Level)
			}
			if r.Requirement == "" {
				return fmt.Errorf("%s has no requirement", r.ID)
			}
			t.Rows = append(t.Rows, r)
			return nil
		}))
		tables = append(tables, t)
	}
	return tables, errors.Join(errs...)
}

// readTSV calls row for each line below the header, with the line's place for messages. It
// returns all errors together, each with its place.
func readTSV(path, text string, header []string, row func(place string, fields []string) error) error {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if lines[0] != strings.Join(header, "\t") {
		return fmt.Errorf("%s:1: header is %q: expected the columns %s, separated by tabs", path, lines[0], strings.Join(header, ", "))
	}
	var errs []error
	for i, line := range lines[1:] {
		place := fmt.Sprintf("%s:%d", path, i+2)
		fields := strings.Split(line, "\t")
		if len(fields) != len(header) {
			errs = append(errs, fmt.Errorf("%s: %d fields: expected %d, separated by tabs", place, len(fields), len(header)))
			continue
		}
		if id := fields[0]; id == "" || strings.ContainsAny(id, " ,") {
			errs = append(errs, fmt.Errorf("%s: id %q: expected one word", place, id))
			continue
		}
		if err := row(place, fields); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", place, err))
		}
	}
	return errors.Join(errs...)
}
