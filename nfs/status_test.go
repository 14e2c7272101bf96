package nfs

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"
)

func TestStatusCodesAreErrorsOfTheStandardLibraryWhereItHasThem(t *testing.T) {
	standard := []error{fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid, errors.ErrUnsupported, fs.ErrClosed}
	for err, want := range map[error]error{
		ErrNoEnt: fs.ErrNotExist, ErrExist: fs.ErrExist, ErrNotEmpty: fs.ErrExist,
		ErrPerm: fs.ErrPermission, ErrAcces: fs.ErrPermission, ErrInval: fs.ErrInvalid,
		ErrNotSupp: errors.ErrUnsupported, ErrIO: nil, ErrStale: nil,
		MountErrNoEnt: fs.ErrNotExist, MountErrPerm: fs.ErrPermission, MountErrAcces: fs.ErrPermission,
		MountErrInval: fs.ErrInvalid, MountErrNotSupp: errors.ErrUnsupported, MountErrServerFault: nil,
		MountStat(ErrExist): nil, // no code of MOUNT
	} {
		for _, target := range standard {
			if got := errors.Is(err, target); got != (target == want) {
				t.Errorf("errors.Is(%v, %v) is %v", err, target, got)
			}
		}
	}
}

func TestSuccessIsNoError(t *testing.T) {
	if OK.Err() != nil || MountOK.Err() != nil {
		t.Error("success is an error")
	}
	if ErrIO.Err() != ErrIO || MountErrIO.Err() != MountErrIO {
		t.Error("an error lost its code")
	}
}

func TestCodesPrintTheirNames(t *testing.T) {
	for s := range statNames {
		if s != OK && !strings.HasPrefix(s.String(), "NFS3ERR_") || !strings.Contains(s.Error(), s.String()) {
			t.Errorf("code %d prints as %v, %v", uint32(s), s, s.Error())
		}
	}
	for got, want := range map[string]string{
		Stat(12345).Error():          "nfsstat3 12345",
		MountErrNoEnt.String():       "MNT3ERR_NOENT",
		MountErrNoEnt.Error():        "no such file or directory (MNT3ERR_NOENT)",
		MountErrServerFault.String(): "MNT3ERR_SERVERFAULT",
		MountOK.Error():              "MNT3_OK",
		MountStat(17).Error():        "file exists (mountstat3 17)",
		MountStat(99).Error():        "mountstat3 99",
		ProcCommit.String():          "COMMIT",
		Proc(22).String():            "procedure 22",
		MountExport.String():         "EXPORT",
		MountProc(6).String():        "MOUNT procedure 6",
		TypeFifo.String():            "NF3FIFO",
		FileType(0).String():         "ftype3 0",
		FileType(8).String():         "ftype3 8",
		SetToClientTime.String():     "SET_TO_CLIENT_TIME",
		TimeHow(3).String():          "time_how 3",
		Exclusive.String():           "EXCLUSIVE",
		CreateMode(3).String():       "createmode3 3",
		FileSync.String():            "FILE_SYNC",
		StableHow(3).String():        "stable_how 3",
		FH{1, 0xff}.String():         "01ff",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTypesAndModesAreThoseOfGo(t *testing.T) {
	for _, tt := range []struct {
		typ  FileType
		mode uint32
		want fs.FileMode
	}{
		{TypeReg, 0o644, 0o644},
		{TypeReg, 0o104755, 0o755 | fs.ModeSetuid}, // with the type's bits, as some servers send it
		{TypeReg, 0o2755, 0o755 | fs.ModeSetgid},
		{TypeDir, 0o1777, fs.ModeDir | fs.ModeSticky | 0o777},
		{TypeBlk, 0o600, fs.ModeDevice | 0o600},
		{TypeChr, 0o600, fs.ModeDevice | fs.ModeCharDevice | 0o600},
		{TypeLnk, 0o777, fs.ModeSymlink | 0o777},
		{TypeSock, 0, fs.ModeSocket},
		{TypeFifo, 0, fs.ModeNamedPipe},
		{0, 0, fs.ModeIrregular},
	} {
		a := Attributes{Type: tt.typ, Mode: tt.mode}
		if got := a.FileMode(); got != tt.want {
			t.Errorf("%v with mode %o is %v, want %v", tt.typ, tt.mode, got, tt.want)
		}
	}
}

func TestTimesReachFrom1970To2106(t *testing.T) {
	for _, tt := range []struct {
		in   time.Time
		want Time
	}{
		{time.Unix(1, 999999999), Time{1, 999999999}},
		{time.Unix(1<<32-1, 5), Time{1<<32 - 1, 5}},
		{time.Unix(-1, 0), Time{}},
		{time.Unix(1<<32, 0), Time{1<<32 - 1, 999999999}},
	} {
		got := TimeOf(tt.in)
		if got != tt.want {
			t.Errorf("%v is %v, want %v", tt.in, got, tt.want)
		}
		if back := TimeOf(got.Time()); back != got {
			t.Errorf("%v comes back as %v", got, back)
		}
	}
}
