package config

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// GuardSettings are the installation's settings of the guard: its image and its resources. They are not policy, since
// they are the same in every namespace.
type GuardSettings struct {
	Image      string
	Mirrors    []string // repositories that hold the image too, where another webhook may point to
	PullPolicy corev1.PullPolicy
	PullSecret string // must exist in the tenant's namespace; empty: none
	CPU        string // requests and limits alike, so that Guaranteed pods stay so
	Memory     string
}

// Mirrored returns the settings with the images that guard containers have already, where all are the same one and the
// installation accepts it: another webhook of the cluster points to a mirror. Else it returns the settings.
func (g *GuardSettings) Mirrored(images []string) *GuardSettings {
	if g == nil || len(images) == 0 || len(slices.Compact(slices.Clone(images))) > 1 || !g.accepts(images[0]) {
		return g
	}
	out := *g
	out.Image = images[0]
	return &out
}

// accepts reports whether an image is the guard's: in its repository or one of the mirrors, with the same digest, or the same
// tag where the guard's has no digest. Who serves the image matters also with a digest: a repository of a tenant's could keep
// a guard that was terminated from starting again.
func (g *GuardSettings) accepts(image string) bool {
	want, have := readImage(g.Image), readImage(image)
	if !slices.ContainsFunc(append([]string{g.Image}, g.Mirrors...),
		func(m string) bool { return readImage(m).repository == have.repository }) {
		return false
	}
	return have.digest == want.digest && (want.digest != "" || have.tag == want.tag)
}

type imageName struct{ repository, tag, digest string }

// readImage splits an image's name, with the registry and the tag that runtimes add.
func readImage(text string) (out imageName) {
	out.repository, out.digest, _ = strings.Cut(text, "@")
	out.tag = "latest"
	if i := strings.LastIndexByte(out.repository, ':'); i > strings.LastIndexByte(out.repository, '/') {
		out.repository, out.tag = out.repository[:i], out.repository[i+1:]
	}
	first, _, deep := strings.Cut(out.repository, "/")
	switch {
	case !deep:
		out.repository = "docker.io/library/" + out.repository
	case !strings.ContainsAny(first, ".:") && first != "localhost":
		out.repository = "docker.io/" + out.repository
	}
	return out
}
