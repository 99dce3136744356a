package recipe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gpuslice/gpuslice/deploy/images/oci"
)

// write places a bundle in the folder of images, after that of an earlier build is gone. It returns nil if there is no
// image for any platform.
func (r Recipe) write(o *Options, b oci.Bundle) (*Image, error) {
	image := &Image{Name: b.Name, Layout: filepath.Join(o.Out, r.Name),
		Archive: filepath.Join(o.Out, r.Name+".tar"), Sizes: map[string]int64{}}
	if err := r.clear(o); err != nil || len(b.Images) == 0 {
		return nil, err
	}
	var err error
	if image.Digest, err = b.WriteLayout(image.Layout); err != nil {
		return nil, err
	}
	for _, i := range b.Images {
		if image.Sizes[i.Platform.String()], err = size(i); err != nil {
			return nil, err
		}
		for _, d := range i.Documents {
			path := filepath.Join(o.Out, d.Title)
			if err := os.WriteFile(path, d.Content, 0o644); err != nil {
				return nil, fmt.Errorf("write document: %w", err)
			}
			image.Documents = append(image.Documents, path)
		}
	}
	return image, archive(image)
}

func (r Recipe) clear(o *Options) error {
	old, err := filepath.Glob(filepath.Join(o.Out, r.Name+"-*.spdx.json"))
	if err != nil {
		return fmt.Errorf("look for documents: %w", err)
	}
	for _, path := range append(old, filepath.Join(o.Out, r.Name), filepath.Join(o.Out, r.Name+".tar")) {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("clear folder of images: %w", err)
		}
	}
	return nil
}

func archive(i *Image) error {
	f, err := os.Create(i.Archive)
	if err != nil {
		return fmt.Errorf("write archive: %w", err)
	}
	return errors.Join(oci.WriteArchive(i.Layout, f), f.Close())
}

// size is the number of bytes that a node pulls.
func size(i oci.Built) (int64, error) {
	layers, err := i.Image.Layers()
	if err != nil {
		return 0, fmt.Errorf("read layers: %w", err)
	}
	var sum int64
	for _, l := range layers {
		n, err := l.Size()
		if err != nil {
			return 0, fmt.Errorf("read layer: %w", err)
		}
		sum += n
	}
	return sum, nil
}
