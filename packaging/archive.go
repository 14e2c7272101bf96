// This file writes archives that are the same each time: files in a given order, owned by
// root, with one time.

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A member is a file in an archive, or a directory if its name ends in "/".
type member struct {
	name string
	mode int64
	data []byte
	id   int // of its user and group
}

// writeTar returns a tar archive.
func writeTar(members []member, at time.Time) ([]byte, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, m := range members {
		h := tar.Header{Name: m.name, Mode: m.mode, Size: int64(len(m.data)), ModTime: at, Uid: m.id, Gid: m.id, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if strings.HasSuffix(m.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
		if _, err := w.Write(m.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return archive.Bytes(), err
}

// writeTarGz returns a compressed tar archive.
func writeTarGz(members []member, at time.Time) ([]byte, error) {
	archive, err := writeTar(members, at)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(archive); err != nil {
		return nil, err
	}
	err = w.Close()
	return packed.Bytes(), err
}

// writeZip returns a zip archive.
func writeZip(members []member, at time.Time) ([]byte, error) {
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	for _, m := range members {
		f, err := w.CreateHeader(&zip.FileHeader{Name: m.name, Method: zip.Deflate, Modified: at.UTC()})
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(m.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return archive.Bytes(), err
}

// writeSums writes SHA256SUMS for sha256sum -c. Files that were made before keep
// their lines as long as they are there.
func writeSums(dir string, files []string) error {
	sums := make(map[string]string)
	path := filepath.Join(dir, "SHA256SUMS")
	before, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for line := range strings.Lines(string(before)) {
		if sum, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				sums[name] = sum
			}
		}
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		sums[filepath.Base(file)] = hex.EncodeToString(sum[:])
	}
	var lines []string
	for name, sum := range sums {
		lines = append(lines, fmt.Sprintf("%s  %s\n", sum, name))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	return os.WriteFile(path, []byte(strings.Join(lines, "")), 0o644)
}
