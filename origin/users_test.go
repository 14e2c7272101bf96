package origin

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestUsersAreRememberedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		u := users{lookup: func(uid uint32) (*User, error) {
			asked++
			return &User{UID: uid, Groups: []uint32{uint32(asked)}}, nil
		}}
		find := func(uid, group uint32) {
			t.Helper()
			if got, err := u.find(uid); err != nil || got.UID != uid || got.Groups[0] != group {
				t.Errorf("uid %d: %+v, %v, want the answer %d", uid, got, err, group)
			}
		}
		find(7, 1)
		find(8, 2)
		time.Sleep(remembered - 1)
		find(7, 1)
		time.Sleep(time.Nanosecond)
		find(7, 3)
		find(7, 3)
		for uid := range uint32(3 * maxRemembered) {
			find(1000+uid, 4+uid)
			if len(u.known) > maxRemembered {
				t.Fatalf("%d users are known", len(u.known))
			}
		}
	})
}

func TestAUserWhoWasNotFoundIsAskedForAgain(t *testing.T) {
	broken := errors.New("broken")
	answers := []error{broken, nil}
	u := users{lookup: func(uid uint32) (*User, error) {
		err := answers[0]
		answers = answers[1:]
		return &User{UID: uid}, err
	}}
	if _, err := u.find(7); err != broken {
		t.Errorf("%v, want %v", err, broken)
	}
	if got, err := u.find(7); err != nil || got.UID != 7 {
		t.Errorf("%+v, %v", got, err)
	}
}

// A directory server that does not answer delays no connection for long: neither the one
// whose look-up hangs, nor those accepted after it.
func TestAHangingLookUpHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answered := make(chan struct{})
		u := users{lookup: func(uid uint32) (*User, error) {
			if uid >= 1000 {
				<-answered
			}
			return &User{UID: uid}, nil
		}}
		begin := time.Now()
		waits := func(uid uint32, fails bool, want time.Duration) {
			t.Helper()
			before := time.Now()
			got, err := u.find(uid)
			if (err != nil) != fails || err == nil && got.UID != uid {
				t.Errorf("uid %d: %+v, %v", uid, got, err)
			}
			if took := time.Since(before); took != want {
				t.Errorf("uid %d: an answer after %v, want %v", uid, took, want)
			}
		}
		waits(1000, true, maxWait)
		waits(1000, true, 0)
		waits(7, false, 0)
		waits(0, false, 0)
		for uid := range uint32(maxLookups - 1) {
			waits(1001+uid, true, shortWait)
		}
		waits(2000, true, 0)
		waits(0, false, 0)
		waits(7, false, 0)
		if took := time.Since(begin); took > 2*maxWait {
			t.Errorf("all took %v", took)
		}
		close(answered)
		synctest.Wait()
		waits(1000, false, 0)
		waits(2000, false, 0)
		if len(u.running) != 0 {
			t.Errorf("%d look-ups are under way", len(u.running))
		}
	})
}
