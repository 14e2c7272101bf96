package verbs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

// results are all results that a verb can have besides success, by name.
var results = map[string]error{
	"ErrResources": verbs.ErrResources, "ErrRNIC": verbs.ErrRNIC, "ErrName": verbs.ErrName, "ErrRNICInUse": verbs.ErrRNICInUse, "ErrBlockList": verbs.ErrBlockList,
	"ErrPD": verbs.ErrPD, "ErrPDInUse": verbs.ErrPDInUse, "ErrCQ": verbs.ErrCQ, "ErrCQInUse": verbs.ErrCQInUse, "ErrCQEntries": verbs.ErrCQEntries,
	"ErrCQEmpty": verbs.ErrCQEmpty, "ErrHandler": verbs.ErrHandler, "ErrNotify": verbs.ErrNotify, "ErrShrink": verbs.ErrShrink,
	"ErrSRQ": verbs.ErrSRQ, "ErrSRQInUse": verbs.ErrSRQInUse, "ErrSRQLimit": verbs.ErrSRQLimit, "ErrRQOfSRQ": verbs.ErrRQOfSRQ, "ErrRQLimit": verbs.ErrRQLimit,
	"ErrQP": verbs.ErrQP, "ErrAttribute": verbs.ErrAttribute, "ErrWRMax": verbs.ErrWRMax, "ErrSGEMax": verbs.ErrSGEMax, "ErrORD": verbs.ErrORD, "ErrIRD": verbs.ErrIRD,
	"ErrState": verbs.ErrState, "ErrFlushing": verbs.ErrFlushing, "ErrLLP": verbs.ErrLLP, "ErrQPWindows": verbs.ErrQPWindows, "ErrFull": verbs.ErrFull,
	"ErrOp": verbs.ErrOp, "ErrSGLFormat": verbs.ErrSGLFormat, "ErrSGLLength": verbs.ErrSGLLength, "ErrModifier": verbs.ErrModifier,
	"ErrSTag": verbs.ErrSTag, "ErrMRWindows": verbs.ErrMRWindows, "ErrAccess": verbs.ErrAccess, "ErrLength": verbs.ErrLength, "ErrVA": verbs.ErrVA,
	"ErrFBO": verbs.ErrFBO, "ErrBufferEntry": verbs.ErrBufferEntry, "ErrBufferSize": verbs.ErrBufferSize,
}

var resultName = regexp.MustCompile("`(Err[A-Z]\\w*)`")

// resultsOnPage are the results that docs/verbs.md gives each verb of the
// specification. The one that every verb has is not among them.
func resultsOnPage(t *testing.T) map[string]map[error]bool {
	t.Helper()
	page, err := os.ReadFile("../docs/verbs.md")
	check(t, err)
	_, table, _ := strings.Cut(string(page), "\n## Verbs\n")
	table, _, _ = strings.Cut(table, "\n## ")
	of := map[string]map[error]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|") // "", §, verb, Weft, results, ...
		if len(cells) < 5 || !strings.HasPrefix(cells[1], " 9.") {
			continue
		}
		verb, _, _ := strings.Cut(strings.TrimSpace(cells[2]), " (")
		of[verb] = map[error]bool{}
		for _, m := range resultName.FindAllStringSubmatch(cells[4], -1) {
			result, ok := results[m[1]]
			if !ok {
				t.Errorf("%s: %s is no result", verb, m[1])
			}
			of[verb][result] = true
		}
	}
	if len(of) != 31 {
		t.Errorf("docs/verbs.md has %d verbs, expected 31", len(of))
	}
	return of
}
