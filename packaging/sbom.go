// This file writes what a command is made of, in CycloneDX's JSON.

package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"os"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// sbom returns the bill of materials of a command that was built: the modules that the
// linker has recorded in it, and Go's standard library.
func (b *builder) sbom(file, goos, goarch string) ([]byte, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	weft := goModule(cdx.ComponentTypeApplication, info.Main.Path, "v"+b.version)
	weft.PackageURL += "?goarch=" + goarch + "&goos=" + goos
	weft.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	weft.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}

	parts := []cdx.Component{goModule(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, goModule(cdx.ComponentTypeLibrary, m.Path, m.Version))
	}
	uses := make([]string, len(parts))
	for i, p := range parts {
		uses[i] = p.BOMRef
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: b.at.Format("2006-01-02T15:04:05Z"), Component: &weft}
	bom.Components = &parts
	bom.Dependencies = &[]cdx.Dependency{{Ref: weft.BOMRef, Dependencies: &uses}}
	var text bytes.Buffer
	err = cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
	return text.Bytes(), err
}

func goModule(kind cdx.ComponentType, path, version string) cdx.Component {
	purl := "pkg:golang/" + path + "@" + version
	return cdx.Component{BOMRef: purl, Type: kind, Name: path, Version: version, PackageURL: purl}
}
