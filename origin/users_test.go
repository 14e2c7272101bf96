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
		time.Sleep(1)
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
