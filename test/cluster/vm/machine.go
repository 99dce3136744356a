package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gpuslice/gpuslice/test/child"
	"github.com/gpuslice/gpuslice/test/cluster/image"
)

// stageVariable is set in the machine alone, to the name of a stage.
const stageVariable = "GPUSLICE_VM"

// Machine is a virtual machine.
type Machine struct {
	Packages Packages
	// Dir is a folder for its archive and for what its kernel writes, console.log.
	Dir string
	// Files are the paths here of what stands at each path in the machine. All are readable and executable by everybody.
	Files map[string]string
	// Kernel are further arguments of the kernel.
	Kernel string
}

// Run starts the machine, and in it this program with other arguments, which have no spaces. It returns what the program
// wrote, once the machine is off.
func (m Machine) Run(ctx context.Context, args ...string) (string, error) {
	archive, err := m.pack()
	if err != nil {
		return "", err
	}
	cmd, err := m.command(ctx, archive, args)
	if err != nil {
		return "", err
	}
	var said strings.Builder
	cmd.Stderr = &said
	ended, err := child.Start(cmd)
	if err == nil {
		err = <-ended
	}
	text, readErr := os.ReadFile(filepath.Join(m.Dir, programLog))
	if err := errors.Join(err, context.Cause(ctx), readErr); err != nil {
		return string(text), fmt.Errorf("run virtual machine: %w\n%s%s", err, said.String(), m.console())
	}
	output, status, found := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), exitLine)
	if !found {
		return output, fmt.Errorf("run virtual machine: it stopped before its program did\n%s", m.console())
	}
	if status := strings.TrimSpace(status); status != "0" {
		return output, fmt.Errorf("run virtual machine: its program ended with %s", status)
	}
	return output, nil
}

// pack writes the archive: the files, and this program as the one that the kernel starts.
func (m Machine) pack() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find own program: %w", err)
	}
	files, err := image.Program("/init", self)
	if err != nil {
		return "", err
	}
	for name, from := range m.Files {
		files[name] = from
	}
	out, err := os.Create(filepath.Join(m.Dir, "files.cpio"))
	if err != nil {
		return "", fmt.Errorf("pack virtual machine: %w", err)
	}
	return out.Name(), errors.Join(writeArchive(out, files), out.Close())
}

// Names of the files with what came over the two serial lines.
const (
	kernelLog  = "console.log"
	programLog = "program.log"
)

// command returns the command line of QEMU. TCG is its own processor, which is there without KVM.
func (m Machine) command(ctx context.Context, archive string, args []string) (*exec.Cmd, error) {
	var paths []string
	for _, path := range []string{"/usr/bin/qemu-system-x86_64", "/boot/vmlinuz-*-cloud-amd64", "/usr/share/qemu", "/usr/share/seabios"} {
		found, err := m.Packages.Find(path)
		if err != nil {
			return nil, err
		}
		paths = append(paths, found)
	}
	kernel := "console=ttyS0 quiet panic=-1 " + m.Kernel + " " + stageVariable + "=" + stageFirst + " -- " + strings.Join(args, " ")
	cmd := exec.CommandContext(ctx, paths[0], "-L", paths[2], "-L", paths[3], "-nodefaults", "-no-user-config", "-no-reboot",
		"-machine", "pc", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "2048", "-display", "none",
		"-serial", "file:"+filepath.Join(m.Dir, kernelLog), "-serial", "file:"+filepath.Join(m.Dir, programLog),
		"-kernel", paths[1], "-initrd", archive, "-append", kernel)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+m.Packages.libraries())
	return cmd, nil
}

// console returns the last of what the kernel wrote.
func (m Machine) console() string {
	text, err := os.ReadFile(filepath.Join(m.Dir, kernelLog))
	if err != nil {
		return err.Error()
	}
	const most = 4000
	return "the kernel wrote:\n" + string(text[max(0, len(text)-most):])
}
