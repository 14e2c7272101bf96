package main

// iSER: tgtd serves a file, and initiators of libiscsi work on it. tgtd is asked by a
// socket that TGT_IPC_SOCKET names, so it needs no root. It always serves iSER at port 3260.
//
// Every five seconds it sends a NOP-In to each initiator, and libiscsi has no receive for that
// until it has handled the answer to its login: so initiators run with --patient.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	iserPort  = 3260
	targetURL = "iser://127.0.0.1:3260/iqn.2026-11.test:d/1"
	initiator = "iqn.2026-11.test:i"
	suiteName = "iqn.2007-10.com.github:sahlberg:libiscsi:iscsi-test" // of iscsi-test-cu
	diskSize  = 64 << 20
)

// iscsiTests are the tests of iscsi-test-cu that pass over iSER on Linux's siw.
var iscsiTests = []struct{ family, tests string }{
	{"Inquiry", "Standard EVPD MandatoryVPDSBC SupportedVPD VersionDescriptors"},
	{"ModeSense6", "AllPages Control"},
	{"TestUnitReady", "Simple"},
	{"ReadCapacity10", "Simple"},
	{"ReadCapacity16", "Simple Alloclen PI Support"},
	{"Read6", "Simple BeyondEol"},
	{"Read10", "Simple BeyondEol ZeroBlocks ReadProtect DpoFua"},
	{"Read12", "Simple BeyondEol ZeroBlocks ReadProtect DpoFua"},
	{"Read16", "Simple BeyondEol ZeroBlocks ReadProtect DpoFua"},
	{"Write10", "Simple BeyondEol ZeroBlocks WriteProtect DpoFua"},
	{"Write12", "Simple BeyondEol ZeroBlocks WriteProtect DpoFua"},
	{"Write16", "Simple BeyondEol ZeroBlocks WriteProtect DpoFua"},
	{"WriteVerify10", "Simple BeyondEol ZeroBlocks WriteProtect Flags Dpo"},
	{"Verify10", "Simple BeyondEol ZeroBlocks VerifyProtect Flags Dpo Mismatch MismatchNoCmp"},
	{"Verify12", "Simple BeyondEol ZeroBlocks VerifyProtect Flags Dpo Mismatch MismatchNoCmp"},
	{"Verify16", "Simple BeyondEol ZeroBlocks VerifyProtect Flags Dpo Mismatch MismatchNoCmp"},
	{"Prefetch10", "Simple BeyondEol ZeroBlocks Flags"},
	{"Prefetch16", "Simple BeyondEol ZeroBlocks Flags"},
	{"OrWrite", "Simple BeyondEol ZeroBlocks Protect DpoFua Verify"},
}

func iser() []row {
	rows := []row{
		{name: "tgtd, iscsi-inq", scene: initiatorScene("iscsi-inq -i "+initiator+" "+targetURL, "VIRTUAL-DISK")},
		{name: "tgtd, iscsi-readcapacity16", scene: initiatorScene("iscsi-readcapacity16 -i "+initiator+" "+targetURL, fmt.Sprintf("Total size:%d", diskSize))},
		{name: "tgtd, iscsi-perf, 4 KiB", scene: initiatorScene("iscsi-perf -i "+initiator+" -m 16 -b 8 -t 3 "+targetURL, "iops average", "finished.")},
		{name: "tgtd, iscsi-perf -r, 64 KiB", scene: initiatorScene("iscsi-perf -i "+initiator+" -r -m 16 -b 128 -t 3 "+targetURL, "iops average", "finished.")},
		{name: "tgtd, 8 MiB by WRITE(10) and READ(10), compared", scene: diskScene, needs: []string{"gcc", "/usr/include/iscsi/iscsi.h"}},
	}
	for _, t := range iscsiTests {
		tests := strings.Fields(t.tests)
		rows = append(rows, row{
			name:  fmt.Sprintf("tgtd, iscsi-test-cu %s: %s", t.family, strings.Join(tests, ", ")),
			scene: func(ctx context.Context, s *stage) error { return s.iscsiTests(ctx, t.family, tests) },
		})
	}
	for i := range rows {
		rows[i].pkg, rows[i].personas, rows[i].port = "tgt libiscsi-bin", rnic, iserPort
		if rows[i].needs != nil {
			rows[i].pkg += " libiscsi-dev gcc"
		}
		rows[i].needs = append(rows[i].needs, "tgtd", "tgtadm", "iscsi-inq", "iscsi-test-cu")
	}
	return rows
}

// target starts tgtd, and has it serve the file disk.
func (s *stage) target(ctx context.Context) error {
	disk, err := os.OpenFile(filepath.Join(s.dir, "disk"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return err
	}
	defer disk.Close()
	if err := disk.Truncate(diskSize); err != nil {
		return err
	}
	if err := disk.Chmod(0o666); err != nil {
		return err
	}
	s.env = append(s.env, "TGT_IPC_SOCKET="+filepath.Join(s.dir, "tgt"))
	tcp, err := freePort()
	if err != nil {
		return err
	}
	if _, err := s.serve(ctx, fmt.Sprintf("tgtd -f -d 0 --iscsi portal=127.0.0.1:%d --iser pool_sz_mb=128", tcp)); err != nil {
		return err
	}
	for _, do := range []string{
		"--mode target --op new --tid 1 -T iqn.2026-11.test:d",
		"--mode logicalunit --op new --tid 1 --lun 1 -b {dir}/disk",
		"--mode target --op bind --tid 1 -I ALL", // the login wants the address and the name
		"--mode target --op bind --tid 1 -Q " + initiator,
		"--mode target --op bind --tid 1 -Q " + suiteName,
		"--mode target --op bind --tid 1 -Q " + suiteName + "-2",
	} {
		p, err := s.plain("tgtadm", "tgtadm --lld iser "+do)
		if err != nil {
			return err
		}
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func initiatorScene(command string, says ...string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		if err := s.target(ctx); err != nil {
			return err
		}
		return s.initiate(ctx, "client", command, says...)
	}
}

// initiate runs an initiator to its end, and looks for what it should have said.
func (s *stage) initiate(ctx context.Context, name, command string, says ...string) error {
	p, err := s.start(name, command, "--patient")
	if err != nil {
		return err
	}
	return p.wait(ctx, says...)
}

// iscsiTests runs each test in a process of its own.
func (s *stage) iscsiTests(ctx context.Context, family string, tests []string) error {
	if err := s.target(ctx); err != nil {
		return err
	}
	for _, test := range tests {
		if err := s.initiate(ctx, test, "iscsi-test-cu --dataloss --test=SCSI."+family+"."+test+" "+targetURL, "Tests completed with return value: 0"); err != nil {
			return err
		}
	}
	return nil
}

// diskScene writes a file to the disk and reads it back, and compares the file that tgtd
// serves.
func diskScene(ctx context.Context, s *stage) error {
	if err := s.compile(ctx, "gcc", "blocks", "-liscsi"); err != nil {
		return err
	}
	if err := s.fill("data", 8<<20); err != nil {
		return err
	}
	if err := s.target(ctx); err != nil {
		return err
	}
	if err := s.initiate(ctx, "client", "{dir}/blocks "+targetURL+" "+initiator+" {dir}/data", "16384 blocks are equal"); err != nil {
		return err
	}
	return s.compare(ctx, [2]string{"data", "disk"})
}
