package oncard

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"github.com/gpuslice/gpuslice/cmd/prove/proof"
	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/gpu"
)

// reported compares NVML's memory of a process with the process's own account.
func reported(ctx context.Context, c *card) []check {
	if err := c.requireFree(ctx, 3*gibibyte); err != nil {
		return []check{broken("1Gi by cuMemAlloc", err)}
	}
	return []check{c.driverAPI(ctx), c.torchHolds(ctx, "PyTorch", torchTensor), c.torchHolds(ctx, "CUDA graph of PyTorch", torchGraph), c.nestedPIDs(ctx)}
}

func (c *card) driverAPI(ctx context.Context) check {
	const subject = "1Gi by cuMemAlloc"
	p, err := c.start(ctx, nil)
	if err == nil {
		_, err = p.do(ctx, order{Do: "allocate", Bytes: gibibyte})
	}
	if err != nil {
		return broken(subject, err)
	}
	defer p.stop()
	return c.compare(ctx, subject, p.pid, gibibyte)
}

// compare compares NVML's entry of a process with the memory that it holds.
func (c *card) compare(ctx context.Context, subject string, pid int, held int64) check {
	found, there, err := c.listed(ctx, pid)
	switch {
	case err != nil:
		return broken(subject, err)
	case !there:
		return verdict(subject, false, "NVML does not list the process")
	case !found.Known:
		return verdict(subject, false, "NVML has no amount for the process")
	}
	beside := found.UsedBytes - held
	return verdict(subject, beside >= 0 && beside <= mostContext, "%s held, %s by NVML, so %d MiB of context",
		guard.FormatBytes(held), guard.FormatBytes(found.UsedBytes), beside/mebibyte)
}

// NestCommand is the argument that makes the program mount /proc of a PID namespace, and then run itself in it.
const NestCommand = "nest"

// Nest runs the program with args in the place of this process, whose PID namespace is new.
func Nest(args []string) error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return fmt.Errorf("run the program again: %w", syscall.Exec("/proc/self/exe", append(os.Args[:1:1], args...), os.Environ()))
}

// nestedPIDs compares NVML's answers in a new PID namespace with a process there.
func (c *card) nestedPIDs(ctx context.Context) check {
	const subject = "in a nested PID namespace"
	if os.Geteuid() != 0 {
		return notRun(subject, "needs root")
	}
	if gpu.Older(c.version, gpu.FirstInPod) {
		return notRun(subject, "driver %s, and %s is needed", c.version, gpu.FirstInPod)
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", NestCommand, "--slice", "1Gi", "--way", string(proof.Alloc), "--watch", "1s", "--yes", "--json",
		"--cuda-library", c.cudaLibrary, "--nvml-library", c.nvmlLibrary)
	cmd.Args[0], cmd.Env = os.Args[0], c.environment()
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	p, err := c.launch(cmd)
	if err != nil {
		return broken(subject, err)
	}
	text, err := p.line(ctx)
	if err != nil {
		return broken(subject, err)
	}
	var report proof.Report
	if err := json.Unmarshal([]byte(text), &report); err != nil || report.Readings == nil {
		return notRun(subject, "no report: %s", oneLine(text))
	}
	r := report.Readings
	return verdict(subject, r.PIDs == proof.Right && r.Amounts == proof.Right, "PIDs %s, amounts %s %s", r.PIDs, r.Amounts, r.Detail)
}
