package debian

import (
	_ "embed"
	"fmt"

	"sigs.k8s.io/yaml"
)

//go:embed libc6.yaml
var locked []byte

// Lock names the one C library that images are built with.
type Lock struct {
	// Release is the version of Debian, as in its /etc/os-release.
	Release string `json:"release"`
	Version string `json:"version"`
	// SHA256 are the digests of the package's files by architecture.
	SHA256 map[string]string `json:"sha256"`
}

// Locked returns the lock of this checkout.
func Locked() (Lock, error) {
	var l Lock
	if err := yaml.UnmarshalStrict(locked, &l); err != nil {
		return l, fmt.Errorf("read libc6.yaml: %w", err)
	}
	return l, nil
}

// String is the text of libc6.yaml.
func (l Lock) String() string {
	out := fmt.Sprintf(
		"# The C library in the guard's image. \"go run ./deploy/images lock\" rewrites this file.\nrelease: %q\nversion: %s\nsha256:\n",
		l.Release, l.Version)
	for _, arch := range Architectures() {
		out += fmt.Sprintf("  %s: %s\n", arch, l.SHA256[arch])
	}
	return out
}

// Architectures returns those that images can be built for, which Debian and Go name alike.
func Architectures() []string { return []string{"amd64", "arm64"} }
