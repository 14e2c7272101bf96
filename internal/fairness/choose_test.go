package fairness

import (
	"testing"
	"time"
)

// A row is holders of one share that do the same.
type row struct {
	share   string
	n       int
	spoken  bool
	working bool
	ago     time.Duration // since they came forward; those behind it a millisecond longer
}

func silent(share string, n int, ago time.Duration) row { return row{share, n, false, false, ago} }
func spoken(share string, n int, ago time.Duration) row { return row{share, n, true, false, ago} }
func working(share string, n int) row                   { return row{share, n, true, true, 0} }

func TestWhoHasToGo(t *testing.T) {
	const none = -1
	for _, tt := range []struct {
		name     string
		rows     []row
		newcomer string
		limit    int
		want     int // index, rows counted through
	}{
		{"the oldest of those who are silent", []row{silent("a", 5, 0)}, "b", 5, 4},
		{"the oldest of one's own", []row{silent("a", 5, 0)}, "a", 5, 4},
		{"the silent before the idle", []row{spoken("a", 3, time.Hour), silent("a", 2, 0)}, "a", 5, 4},
		{"the idle once few are silent", []row{silent("a", 2, 0), spoken("a", 18, time.Minute)}, "a", 20, 19},
		{"of the share with most", []row{silent("a", 3, time.Hour), silent("b", 4, 0)}, "c", 7, 6},
		{"not of a smaller share", []row{silent("a", 2, time.Hour), silent("b", 5, 0)}, "b", 7, 6},
		{"not those at work, if others are not", []row{working("a", 10), silent("b", 1, time.Second)}, "c", 11, 10},
		{"nobody who came forward just now", []row{spoken("a", 2, timeToSpeak/2)}, "a", 2, none},
		{"who came forward longest ago, of equals at work", []row{working("a", 1), spoken("a", 2, Recent/2), spoken("b", 2, timeToSpeak/2)}, "b", 5, 2},
		{"a share of workers that has more", []row{working("a", 2), spoken("a", 2, 0), working("b", 2)}, "b", 6, 3},
		{"also where all are being served", []row{working("a", 4), working("b", 2)}, "b", 6, 3},
		{"nobody, if all work and have as much", []row{working("a", 3), working("b", 3)}, "b", 6, none},
		{"nobody, if all work and are alone", []row{working("a", 1), working("b", 1)}, "c", 2, none},
		{"not the idle of a smaller share for the workers of a larger", []row{working("a", 5), spoken("b", 1, time.Hour)}, "a", 6, none},
		{"not those who have just come, if one share has nearly all", []row{silent("h", 2, 0), working("a", 18)}, "c", 20, 19},
		{"but those who have had their time", []row{silent("h", 2, timeToSpeak), working("a", 18)}, "c", 20, 1},
		{"those who have just come, if they are a crowd", []row{silent("a", 1, 0), silent("b", 1, 1), silent("c", 1, 0), working("h", 5)}, "d", 8, 1},
		{"those who have just come, if there is nobody else", []row{silent("a", 1, 0), working("b", 4)}, "b", 5, none},
		{"of many shares the oldest", []row{silent("a", 1, 1), silent("b", 1, 3), silent("c", 1, 2)}, "d", 3, 1},
		{"the many idle of one host before the silent of many", []row{spoken("a", 2, time.Hour), silent("b", 1, 3), silent("c", 1, 2)}, "d", 4, 1},
	} {
		now := time.Now()
		shares := map[string]*tally{tt.newcomer: {places: 1}}
		var all []candidate
		for _, r := range tt.rows {
			if shares[r.share] == nil {
				shares[r.share] = new(tally)
			}
			for i := range r.n {
				since := now.Add(-r.ago - time.Duration(i)*time.Millisecond)
				shares[r.share].places++
				all = append(all, candidate{Standing: Standing{r.spoken, r.working, since}, share: shares[r.share]})
			}
		}
		if got := choose(all, shares[tt.newcomer], tt.limit, now); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}
