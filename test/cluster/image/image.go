package image

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gpuslice/gpuslice/deploy/images/oci"
)

// Image describes an image.
type Image struct {
	// Name is the reference that pods use, with a tag.
	Name string
	// Archive is the path of an archive of the whole image, under that name; nothing else is said of it then.
	Archive string
	// Files are the paths on this machine of the file at each path in the image. All are readable and executable by
	// everybody.
	Files map[string]string
	// Entrypoint is the command.
	Entrypoint []string
	// Env are variables, in the form NAME=VALUE, beside PATH.
	Env []string
}

// Write writes the image as an archive that `ctr images import` takes. The same files give the same bytes.
func (i Image) Write(w io.Writer) error {
	if i.Archive != "" {
		return i.copy(w)
	}
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return fmt.Errorf("make folder of image %s: %w", i.Name, err)
	}
	defer os.RemoveAll(dir)
	built, err := i.pack(dir)
	if err != nil {
		return err
	}
	layout := filepath.Join(dir, "layout")
	if _, err := (oci.Bundle{Name: i.Name, Images: []oci.Built{built}}).WriteLayout(layout); err != nil {
		return err
	}
	return oci.WriteArchive(layout, w)
}

func (i Image) copy(w io.Writer) error {
	f, err := os.Open(i.Archive)
	if err != nil {
		return fmt.Errorf("read image %s: %w", i.Name, err)
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// Build makes the image, which reads from a folder until remove is called.
func (i Image) Build() (built v1.Image, remove func(), err error) {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return nil, nil, fmt.Errorf("make folder of image %s: %w", i.Name, err)
	}
	packed, err := i.pack(dir)
	return packed.Image, func() { os.RemoveAll(dir) }, err
}

// pack makes one layer of the files, with the folders that runtimes mount things on.
func (i Image) pack(dir string) (oci.Built, error) {
	files := map[string]oci.File{"/tmp": oci.Folder(os.ModeSticky | 0o777)}
	for _, folder := range []string{"/dev", "/etc", "/proc", "/sys"} {
		files[folder] = oci.Folder(0o755)
	}
	for at, source := range i.Files {
		content, err := os.ReadFile(source)
		if err != nil {
			return oci.Built{}, fmt.Errorf("read file for image %s: %w", i.Name, err)
		}
		files[at] = oci.Program(content)
	}
	layer, err := oci.Layer(files, dir)
	if err != nil {
		return oci.Built{}, fmt.Errorf("pack image %s: %w", i.Name, err)
	}
	platform := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	made, err := oci.Image(oci.Config{Platform: platform, Entrypoint: i.Entrypoint,
		Env: append([]string{"PATH=/usr/local/bin:/usr/bin:/bin:/"}, i.Env...)}, layer)
	return oci.Built{Platform: platform, Image: made}, err
}
