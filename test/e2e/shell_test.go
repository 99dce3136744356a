package e2e

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/cluster/image"
	"github.com/gpuslice/gpuslice/test/install"
)

// Images with a shell.
const (
	shellName = "gpuslice.test/shell:v1"
	// s6Name is a name that gpuslice knows for images whose first process must be number 1.
	s6Name = "linuxserver/server:v1"
)

// shellImage has a shell and little else, packed from this machine's programs, and the tenant.
func shellImage() (image.Image, error) {
	i, err := shellOf(shellName, "/bin/sh", "-c")
	if err == nil {
		i.Files["/tenant"] = install.Tenant(box.Dir())
	}
	return i, err
}

// s6Image behaves as an image of s6-overlay: it does not start unless it is process 1.
func s6Image() (image.Image, error) {
	return shellOf(s6Name, "/bin/sh", "-c",
		`if [ $$ != 1 ]; then echo can only run as pid 1; exit 100; fi; trap "exit 0" TERM; echo up; sleep 3600 & wait`)
}

func shellOf(name string, entrypoint ...string) (image.Image, error) {
	i := image.Image{Name: name, Entrypoint: entrypoint, Files: map[string]string{}}
	for _, program := range []string{"/bin/sh", "/bin/cat", "/bin/sleep"} {
		files, err := image.Program(program, program)
		if err != nil {
			return i, err
		}
		for dst, src := range files {
			i.Files[dst] = src
		}
	}
	return i, nil
}

// shell is a container without a GPU that runs a script.
func shell(name, script string) corev1.Container {
	return corev1.Container{Name: name, Image: shellName, Args: []string{script}}
}
