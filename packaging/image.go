// This file makes images for containers, as archives in OCI's layout: podman load and
// docker load (from version 25 on) take them.

package main

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nobody is the user of both images, who owns nothing of the system.
const nobody = 65532

const users = "root:x:0:0:root:/root:/sbin/nologin\nweft:x:65532:65532:Weft:/home/weft:/sbin/nologin\n"

// scratchImage makes the image with nothing but the command.
func (b *builder) scratchImage(ctx context.Context) ([]string, error) {
	command, err := os.ReadFile(b.file("weft"))
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(filepath.Join(b.root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	notices, err := b.notices(ctx, "", "linux/"+b.target.arch)
	if err != nil {
		return nil, err
	}
	archive, err := writeTar([]member{
		{name: "dev/", mode: 0o755},
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, data: []byte("root:x:0:\nweft:x:65532:\n")},
		{name: "etc/passwd", mode: 0o644, data: []byte(users)},
		{name: "home/", mode: 0o755},
		{name: "home/weft/", mode: 0o700, id: nobody},
		{name: "proc/", mode: 0o755},
		{name: "sys/", mode: 0o755},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755},
		{name: "usr/bin/", mode: 0o755},
		{name: "usr/bin/weft", mode: 0o755, data: command},
		{name: "usr/share/", mode: 0o755},
		{name: "usr/share/doc/", mode: 0o755},
		{name: "usr/share/doc/weft/", mode: 0o755},
		{name: "usr/share/doc/weft/LICENSE", mode: 0o644, data: license},
		{name: "usr/share/doc/weft/third-party.txt", mode: 0o644, data: []byte(notices)},
	}, b.at)
	if err != nil {
		return nil, err
	}
	layer := b.file("image.tar")
	if err := os.WriteFile(layer, archive, 0o644); err != nil {
		return nil, err
	}
	return b.image("weft-image", layer, "software RDMA: the weft command", v1.Config{Entrypoint: []string{"/usr/bin/weft"}, Cmd: []string{"--help"}})
}

// image makes an image of a layer and returns its archive.
func (b *builder) image(name, layerFile, title string, config v1.Config) ([]string, error) {
	layer, err := tarball.LayerFromFile(layerFile, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	config.User = "65532:65532"
	config.WorkingDir = "/home/weft"
	config.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/home/weft"}
	config.Labels = map[string]string{
		"org.opencontainers.image.title": title, "org.opencontainers.image.source": homepage, "org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.version": b.version, "org.opencontainers.image.revision": b.commit,
		"org.opencontainers.image.created": b.at.Format("2006-01-02T15:04:05Z"),
	}
	made := v1.Time{Time: b.at}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if img, err = mutate.ConfigFile(img, &v1.ConfigFile{
		Architecture: b.target.arch, OS: "linux", Created: made, Config: config, RootFS: v1.RootFS{Type: "layers"},
	}); err != nil {
		return nil, err
	}
	img, err = mutate.Append(img, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: made, CreatedBy: "weft/packaging"}})
	if err != nil {
		return nil, err
	}
	dir := b.file(name)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return nil, err
	}
	tag := strings.TrimSuffix(name, "-image") + ":" + strings.ReplaceAll(b.version, "+", "-")
	if err := path.AppendImage(img, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag})); err != nil {
		return nil, err
	}
	file := filepath.Join(b.out, name+"_"+b.version+"_"+b.target.arch+".oci.tar")
	return []string{file}, b.archiveLayout(dir, file)
}

// archiveLayout writes a directory into a tar archive.
func (b *builder) archiveLayout(dir, file string) error {
	var members []member
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || path == ".":
			return err
		case e.IsDir():
			members = append(members, member{name: path + "/", mode: 0o755})
			return nil
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		members = append(members, member{name: path, mode: 0o644, data: data})
		return err
	})
	if err != nil {
		return err
	}
	archive, err := writeTar(members, b.at)
	if err != nil {
		return err
	}
	return os.WriteFile(file, archive, 0o644)
}
