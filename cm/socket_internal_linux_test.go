package cm

import (
	"testing"

	"golang.org/x/sys/unix"
)

// What the system answers depends on how it is set up; what is said of it does not.

func TestEachAnswerAboutCongestionControlHasItsRemedy(t *testing.T) {
	for _, v := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{unix.ENOENT, `congestion control "x": the system has none of that name: no such file or directory; ` +
			`/proc/sys/net/ipv4/tcp_available_congestion_control lists those loaded, modules tcp_* provide others`},
		{unix.EPERM, `congestion control "x": operation not permitted without CAP_NET_ADMIN; ` +
			`/proc/sys/net/ipv4/tcp_allowed_congestion_control lists those that everybody may use`},
		{unix.EBUSY, `congestion control "x": device or resource busy`},
	} {
		if got := congestionError("x", v.err); text(got) != v.want {
			t.Errorf("%v: %v\nexpected %s", v.err, got, v.want)
		}
	}
}

func TestABufferThatTheSystemMakesSmallerIsAnError(t *testing.T) {
	for _, v := range []struct {
		got  int
		err  error
		want string
	}{
		{1000, nil, ""},
		{1001, nil, ""},
		{999, nil, "receive buffer of 1000 octets: the system allows 999; ask for less, or raise the limit: /proc/sys/net/core/rmem_max"},
		{1000, unix.ENOBUFS, "receive buffer of 1000 octets: no buffer space available; /proc/sys/net/core/rmem_max is the limit"},
	} {
		if got := receiveBuffer.granted(1000, v.got, v.err); text(got) != v.want {
			t.Errorf("%d, %v: %v\nexpected %s", v.got, v.err, got, v.want)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
