package verbs_test

import (
	"errors"
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

// The statuses are those of Verbs §9.5.2, each under its own name, and no others.
//
// Claims: V-9.3.2.1-10
func TestStatusesAreThoseOfTheSpecification(t *testing.T) {
	names := map[verbs.Status]string{
		verbs.Success: "success", verbs.Flushed: "flushed", verbs.InvalidWQE: "invalid WQE",
		verbs.LocalCatastrophic: "local QP catastrophic error", verbs.RemoteTermination: "remote termination error",
		verbs.InvalidSTag: "invalid STag", verbs.BaseBounds: "base and bounds violation",
		verbs.AccessViolation: "access violation", verbs.InvalidPD: "invalid PD ID", verbs.WrapError: "wrap error",
		verbs.InvalidateRefused: "STag to invalidate had invalid PD or access rights",
		verbs.ZeroReadResources: "zero RDMA Read resources", verbs.NotPrivileged: "QP not in privileged mode",
		verbs.STagNotInvalid: "STag not in Invalid state", verbs.InvalidPageSize: "invalid page size",
		verbs.InvalidBufferSize: "invalid physical buffer size", verbs.InvalidBufferListEntry: "invalid physical buffer list entry",
		verbs.InvalidFBO: "invalid first byte offset", verbs.InvalidFRLength: "invalid length of a Fast-Register",
		verbs.InvalidFRAccess: "invalid access rights specified", verbs.BufferListTooLong: "physical buffer list too long",
		verbs.InvalidVA: "invalid virtual address", verbs.InvalidRegion: "invalid region", verbs.InvalidWindow: "invalid window",
		verbs.InvalidLength: "invalid length",
	}
	if len(names) != 25 {
		t.Fatalf("%d statuses are listed here, the specification has 25", len(names))
	}
	seen := map[string]verbs.Status{}
	for s := range verbs.Status(255) {
		want, is := names[s]
		if !is {
			want = "unknown status"
		}
		if got := s.String(); got != want || s.Error() != want {
			t.Errorf("status %d is %q, expected %q", s, got, want)
		}
		if other, twice := seen[want]; is && twice {
			t.Errorf("statuses %d and %d are both %q", s, other, want)
		}
		seen[want] = s
		if err := s.Err(); (err == nil) != (s == verbs.Success) || err != nil && !errors.Is(err, s) {
			t.Errorf("the error of %v is %v", s, err)
		}
	}
}
