package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Image says what an image consists of.
type Image struct {
	// Name is the reference that pods use, with a tag.
	Name string
	// Files are the paths on this machine of what stands at each path in the image. All are readable and
	// executable by everybody.
	Files map[string]string
	// Entrypoint is what runs; Env the variables it has, in the form NAME=VALUE, beside PATH.
	Entrypoint, Env []string
	// User is the numeric user, and with a colon the group, that it runs as; "" is root.
	User string
}

// Write writes the image as a docker-archive. The same files give the same bytes.
func (i Image) Write(w io.Writer) error {
	layer, err := i.layer()
	if err != nil {
		return err
	}
	diff := digest(layer)
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{
			"Entrypoint": i.Entrypoint, "User": i.User, "WorkingDir": "/",
			"Env": append([]string{"PATH=/usr/local/bin:/usr/bin:/bin:/"}, i.Env...),
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + diff}},
	})
	if err != nil {
		return fmt.Errorf("encode configuration of %s: %w", i.Name, err)
	}
	layerName, configName := diff+"/layer.tar", digest(config)+".json"
	manifest, err := json.Marshal([]map[string]any{{"Config": configName, "RepoTags": []string{i.Name}, "Layers": []string{layerName}}})
	if err != nil {
		return fmt.Errorf("encode manifest of %s: %w", i.Name, err)
	}
	out := tar.NewWriter(w)
	for _, f := range []struct {
		name string
		text []byte
	}{{configName, config}, {layerName, layer}, {"manifest.json", manifest}} {
		if err := add(out, f.name, 0o644, f.text); err != nil {
			return fmt.Errorf("write image %s: %w", i.Name, err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("write image %s: %w", i.Name, err)
	}
	return nil
}

// layer returns the archive of the image's files, with the folders that runtimes mount things on.
func (i Image) layer() ([]byte, error) {
	var buf bytes.Buffer
	out := tar.NewWriter(&buf)
	for _, d := range []struct {
		name string
		mode int64
	}{{"dev/", 0o755}, {"etc/", 0o755}, {"proc/", 0o755}, {"sys/", 0o755}, {"tmp/", 0o1777}} {
		if err := out.WriteHeader(&tar.Header{Name: d.name, Typeflag: tar.TypeDir, Mode: d.mode}); err != nil {
			return nil, fmt.Errorf("add folder %s: %w", d.name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(i.Files)) {
		text, err := os.ReadFile(i.Files[name])
		if err != nil {
			return nil, fmt.Errorf("read file for image %s: %w", i.Name, err)
		}
		if err := add(out, strings.TrimPrefix(path.Clean(name), "/"), 0o755, text); err != nil {
			return nil, fmt.Errorf("add %s to image %s: %w", name, i.Name, err)
		}
	}
	if err := out.Close(); err != nil {
		return nil, fmt.Errorf("end layer of %s: %w", i.Name, err)
	}
	return buf.Bytes(), nil
}

func add(out *tar.Writer, name string, mode int64, text []byte) error {
	if err := out.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(text))}); err != nil {
		return err
	}
	_, err := out.Write(text)
	return err
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
