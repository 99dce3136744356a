package config

import (
	"strings"
	"testing"
)

func TestMirrored(t *testing.T) {
	t.Parallel()
	const mirror, digest, other = "mirror.corp:5000/hub/gpuslice/guard", "@sha256:0123", "@sha256:4567"
	for _, c := range []struct {
		name, guard, found string
		want               bool
	}{
		{"a mirror with the tag", "gpuslice/guard:1", mirror + ":1", true},
		{"a mirror with the digest", "gpuslice/guard:1" + digest, mirror + digest, true},
		{"the registry written out", "gpuslice/guard:1", "docker.io/gpuslice/guard:1", true},
		{"another tag", "gpuslice/guard:1", mirror + ":2", false},
		{"another digest", "gpuslice/guard" + digest, mirror + other, false},
		{"the tag without the digest", "gpuslice/guard:1" + digest, mirror + ":1", false},
		{"a digest where there was none", "gpuslice/guard:1", mirror + ":1" + digest, false},
		{"no tag", "gpuslice/guard:1", mirror, false},
		{"a repository that is not listed", "gpuslice/guard:1", "evil.example/gpuslice/guard:1", false},
		{"the digest elsewhere", "gpuslice/guard" + digest, "evil.example/gpuslice/guard" + digest, false},
		{"a repository that begins alike", "gpuslice/guard:1", mirror + "ian:1", false},
		{"below a mirror", "gpuslice/guard:1", mirror + "/evil:1", false},
		{"nothing", "gpuslice/guard:1", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			settings := &GuardSettings{Image: c.guard, Mirrors: []string{mirror}}
			want := map[bool]string{true: c.found, false: c.guard}[c.want]
			if got := settings.Mirrored([]string{c.found, c.found}).Image; got != want {
				t.Errorf("%q", got)
			}
			if settings.Image != c.guard {
				t.Errorf("the installation's own image became %q", settings.Image)
			}
		})
	}
	t.Run("two images are none", func(t *testing.T) {
		t.Parallel()
		settings := &GuardSettings{Image: "gpuslice/guard:1", Mirrors: []string{mirror}}
		if got := settings.Mirrored([]string{mirror + ":1", "gpuslice/guard:1"}).Image; !strings.HasPrefix(got, "gpuslice/") {
			t.Errorf("%q", got)
		}
	})
}
