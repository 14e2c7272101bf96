// This file finds what a run needs and this machine does not have.

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/weft-rdma/weft/interop/internal/tshark"
)

// missing lists what the parts need and this machine does not have, each with
// the way to get it.
func (o *options) missing(parts []string) []string {
	var list []string
	if _, err := exec.LookPath("go"); err != nil {
		list = append(list, "the go command, to build cmd/weft: see https://go.dev/doc/install")
	}
	if err := tshark.Missing(); err != nil {
		list = append(list, err.Error())
	}
	if slices.Contains(parts, "run") {
		list = append(list, missingPrograms()...)
	}
	if _, err := exec.LookPath("python3"); err != nil && slices.Contains(parts, "openssl") {
		list = append(list, "python3, whose ssl is OpenSSL: apt-get install python3")
	}
	if _, err := exec.LookPath("gnutls-cli"); err != nil && slices.Contains(parts, "openssl") {
		list = append(list, "gnutls-cli: apt-get install gnutls-bin")
	}
	inGuest := func(part string) bool { return part != "captures" && part != "openssl" }
	if !slices.ContainsFunc(parts, inGuest) {
		return list
	}
	if os.Geteuid() != 0 {
		list = append(list, "root's rights, for the guest's network (a namespace, a bridge and a tap device): run as root, "+
			"or leave the guest out with --parts captures,openssl")
	}
	if _, err := exec.LookPath(o.tlsGuest); err != nil && slices.Contains(parts, "tls") {
		list = append(list, fmt.Sprintf("a guest with xprtsec: %q cannot be run (%v); guest/tlsguest deps && guest/tlsguest build makes one (see README.md)", o.tlsGuest, err))
	}
	if slices.Equal(parts, []string{"tls"}) {
		return list
	}
	if _, err := exec.LookPath(o.guest); err != nil {
		list = append(list, fmt.Sprintf("a guest: %q cannot be run (%v); name one with --guest or WEFT_GUEST, "+
			"or make the one that comes with this directory: guest/siwguest deps && guest/siwguest build (Debian; see README.md)", o.guest, err))
	}
	return list
}

// build builds the command under test from this repository into a directory of
// its own, which it returns.
func (h *harness) build(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "weft-interop-")
	if err != nil {
		return "", err
	}
	h.weft = filepath.Join(dir, "weft")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", h.weft, "./cmd/weft")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("building cmd/weft: %w\n%s", err, out)
	}
	return dir, nil
}
