package recipe

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"maps"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gpuslice/gpuslice/deploy/images/debian"
	"github.com/gpuslice/gpuslice/deploy/images/oci"
	"github.com/gpuslice/gpuslice/deploy/images/sbom"
)

// contents are the layers of an image, the lowest first, and their files.
type contents struct {
	layers     []map[string]oci.File
	components []sbom.Component
}

// passwd and group let tools show a name for the user.
const (
	passwd = "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n"
	group  = "root:x:0:\nnonroot:x:65532:\n"
)

// contents puts together the content of an image, from its compiled program.
func (r Recipe) contents(ctx context.Context, o *Options, p v1.Platform, program []byte) (contents, error) {
	bottom := map[string]oci.File{"/etc/passwd": oci.Text(passwd), "/etc/group": oci.Text(group)}
	component, texts, err := describe(ctx, o, program)
	if err != nil {
		return contents{}, err
	}
	top := texts.files()
	top[r.Program] = oci.Program(program)
	c := contents{layers: []map[string]oci.File{bottom, top}, components: []sbom.Component{component}}
	loading := map[string][]byte{r.Name: program} // programs that need the C library
	for _, beside := range r.Brings {
		program, err := beside.compile(ctx, o, p)
		if err != nil {
			return contents{}, err
		}
		component, _, err := describe(ctx, o, program)
		if err != nil {
			return contents{}, err
		}
		if beside.LoadsDriver {
			loading[beside.Name] = program
		}
		top[beside.Program] = oci.Program(program)
		c.components = append(c.components, component)
	}
	if !r.LoadsDriver {
		return c, nil
	}
	library, files, err := cLibrary(ctx, o, p.Architecture)
	if err != nil {
		return contents{}, err
	}
	for name, program := range loading {
		if err := runs(program, files); err != nil {
			return contents{}, fmt.Errorf("check %s: %w", name, err)
		}
	}
	maps.Copy(bottom, files)
	c.components = append(c.components, library)
	return c, nil
}

// describe lists the parts of a program, with the texts of the licences.
func describe(ctx context.Context, o *Options, program []byte) (sbom.Component, licenses, error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return sbom.Component{}, nil, fmt.Errorf("read what the program was built from: %w", err)
	}
	texts, err := collect(ctx, o, sbom.Linked(info))
	if err != nil {
		return sbom.Component{}, nil, err
	}
	return sbom.Program(info, o.Version, fmt.Sprintf("%x", sha256.Sum256(program)), texts.of), texts, nil
}

// cLibrary returns an image's part of Debian's C library, with the files by which scanners and NVIDIA's container tools
// recognize Debian's: the former look for the package, the latter for the place of the driver's libraries.
func cLibrary(ctx context.Context, o *Options, arch string) (sbom.Component, map[string]oci.File, error) {
	lock, err := debian.Locked()
	if err != nil {
		return sbom.Component{}, nil, err
	}
	found, err := o.libraries().Find(ctx, lock, arch)
	if err != nil {
		return sbom.Component{}, nil, fmt.Errorf("get the C library: %w", err)
	}
	files, err := found.Files(ctx)
	if err != nil {
		return sbom.Component{}, nil, err
	}
	control, err := found.Control(ctx)
	if err != nil {
		return sbom.Component{}, nil, err
	}
	maps.Copy(files, map[string]oci.File{
		"/etc/debian_version":          oci.Text(lock.Release + "\n"),
		"/etc/os-release":              oci.Text(fmt.Sprintf("ID=debian\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=%q\n", lock.Release)),
		"/etc/ld.so.conf":              oci.Text("include /etc/ld.so.conf.d/*.conf\n"),
		"/var/lib/dpkg/status.d/libc6": oci.Text(control),
	})
	return sbom.Component{
		Name: "libc6", Version: found.Version, License: libraryLicense, Digest: found.SHA256,
		URL: fmt.Sprintf("pkg:deb/debian/libc6@%s?arch=%s&distro=debian-%s",
			strings.ReplaceAll(found.Version, "+", "%2B"), arch, lock.Release),
		Remark: "parts of Debian's package, whose source package is glibc " +
			found.Version + "; the licences of all parts are in /usr/share/doc/libc6/copyright",
	}, files, nil
}
