package recipe

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gpuslice/gpuslice/deploy/images/debian"
)

// Options describe a build and its place.
type Options struct {
	// Checkout is the folder of the sources, Out the one that takes the images, Cache one that makes the next build quick.
	Checkout, Out, Cache string
	// Environment is that of Go's commands; nil is this process's.
	Environment []string
	// Repository begins the names of the images, Version is their tag and the programs' own version.
	Repository, Version string
	// Revision is the commit, "" where it is not known. It is a label and changes nothing else.
	Revision  string
	Platforms []v1.Platform
	// Compilers are C compilers by architecture, in the place of those that are looked for.
	Compilers map[string]string
	// Debs is a folder with Debian's packages; Newest takes a newer C library where the locked one is not to be had.
	Debs   string
	Newest bool
	// Created is the images' date of creation. The zero time is 1970.
	Created time.Time
	// Say reports slow steps, and deviations from the options.
	Say func(format string, args ...any)
}

func (o *Options) libraries() debian.Store {
	return debian.Store{Debs: o.Debs, Cache: filepath.Join(o.Cache, "debian"), Newest: o.Newest, Say: o.Say}
}

func (o *Options) environment() []string {
	if o.Environment == nil {
		return os.Environ()
	}
	return slices.Clone(o.Environment)
}

// Made is the time that files say they were made.
func (o *Options) Made() time.Time {
	if o.Created.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return o.Created.UTC()
}

// Cache returns the folder of the user's that images are cached in.
func Cache() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for the cache: %w", err)
	}
	return filepath.Join(dir, "gpuslice", "images"), nil
}

// Checkout returns the folder of the sources, from the working folder upwards.
func Checkout() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the sources: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "deploy", "images", "recipe")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the sources: %s is not in a checkout of gpuslice", start)
		}
	}
}

// Epoch reads the time in the variable SOURCE_DATE_EPOCH, which reproducible builds share: seconds since 1970. It is the
// zero time where the text is empty.
func Epoch(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("read SOURCE_DATE_EPOCH: %q is no number of seconds", text)
	}
	return time.Unix(seconds, 0), nil
}
