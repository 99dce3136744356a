package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Image describes an image.
type Image struct {
	// Name is the reference that pods use, with a tag.
	Name string
	// Files are the paths on this machine of the file at each path in the image. All are readable and executable by
	// everybody.
	Files map[string]string
	// Entrypoint is the command.
	Entrypoint []string
	// Env are variables, in the form NAME=VALUE, beside PATH.
	Env []string
	// User is a numeric user and group with a colon between them. "" is root.
	User string
}

// Manifest is the media type of an image's manifest.
const Manifest = "application/vnd.oci.image.manifest.v1+json"

// Blobs are the documents and the layer of an image by digest (sha256:HEX), as registries have them.
type Blobs map[string][]byte

func (b Blobs) add(blob []byte, mediaType string) descriptor {
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(blob))
	b[digest] = blob
	return descriptor{MediaType: mediaType, Digest: digest, Size: len(blob)}
}

// descriptor names a blob in another one.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Build makes the image and returns the digest of its manifest among its blobs. The same files give the same bytes.
func (i Image) Build() (manifest string, blobs Blobs, err error) {
	d, blobs, err := i.build()
	return d.Digest, blobs, err
}

func (i Image) build() (descriptor, Blobs, error) {
	packed, err := i.layer()
	if err != nil {
		return descriptor{}, nil, fmt.Errorf("pack image %s: %w", i.Name, err)
	}
	blobs := Blobs{}
	layer := blobs.add(packed, "application/vnd.oci.image.layer.v1.tar")
	text, err := json.Marshal(map[string]any{
		"os": "linux", "architecture": runtime.GOARCH, "rootfs": map[string]any{"type": "layers", "diff_ids": []string{layer.Digest}},
		"config": map[string]any{"Entrypoint": i.Entrypoint, "User": i.User, "WorkingDir": "/",
			"Env": append([]string{"PATH=/usr/local/bin:/usr/bin:/bin:/"}, i.Env...)},
	})
	if err != nil {
		return descriptor{}, nil, fmt.Errorf("configure image %s: %w", i.Name, err)
	}
	config := blobs.add(text, "application/vnd.oci.image.config.v1+json")
	text, err = json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": Manifest, "config": config, "layers": []descriptor{layer}})
	if err != nil {
		return descriptor{}, nil, fmt.Errorf("describe image %s: %w", i.Name, err)
	}
	return blobs.add(text, Manifest), blobs, nil
}

// Write writes the image as an archive that `ctr images import` takes, which is an OCI layout.
func (i Image) Write(w io.Writer) error {
	manifest, blobs, err := i.build()
	if err != nil {
		return err
	}
	manifest.Annotations = map[string]string{"io.containerd.image.name": i.whole()}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": []descriptor{manifest}})
	if err != nil {
		return fmt.Errorf("list image %s: %w", i.Name, err)
	}
	out := tar.NewWriter(w)
	err = errors.Join(add(out, "oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)), add(out, "index.json", index))
	for _, digest := range slices.Sorted(maps.Keys(blobs)) {
		err = cmp.Or(err, add(out, "blobs/"+strings.Replace(digest, ":", "/", 1), blobs[digest]))
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("write image %s: %w", i.Name, err)
	}
	return nil
}

// whole is the image's name as kubelets write it.
func (i Image) whole() string {
	host, _, found := strings.Cut(i.Name, "/")
	if found && strings.ContainsAny(host, ".:") {
		return i.Name
	}
	return "docker.io/" + i.Name
}

// layer packs the files, and the folders that runtimes mount things on.
func (i Image) layer() ([]byte, error) {
	folders := map[string]int64{"/dev": 0o755, "/etc": 0o755, "/proc": 0o755, "/sys": 0o755, "/tmp": 0o1777}
	for at := range i.Files {
		if !path.IsAbs(at) || path.Clean(at) != at {
			return nil, fmt.Errorf("%q is not a clean absolute path", at)
		}
		for at = path.Dir(at); at != "/"; at = path.Dir(at) {
			folders[at] = cmp.Or(folders[at], 0o755)
		}
	}
	var packed bytes.Buffer
	out := tar.NewWriter(&packed)
	for _, at := range slices.Sorted(maps.Keys(folders)) {
		if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: at[1:] + "/", Mode: folders[at]}); err != nil {
			return nil, err
		}
	}
	for _, at := range slices.Sorted(maps.Keys(i.Files)) {
		content, err := os.ReadFile(i.Files[at])
		if err != nil {
			return nil, err
		}
		if err := add(out, at[1:], content); err != nil {
			return nil, err
		}
	}
	return packed.Bytes(), out.Close()
}

// add adds a file that everybody may read and run.
func add(out *tar.Writer, name string, content []byte) error {
	if err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := out.Write(content)
	return err
}
