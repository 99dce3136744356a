package cgroupv2

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/cluster/image"
	"github.com/gpuslice/gpuslice/test/cluster/vm"
	"github.com/gpuslice/gpuslice/test/fakegpu"
)

func TestMain(m *testing.M) { os.Exit(vm.Main(m)) }

// scenarios are held under each layout of cgroups.
var scenarios = []struct {
	name string
	run  func(*testing.T, layout, kubernetes.Interface)
}{
	{"the guard terminates a process past its slice, then all of a container, in a cgroup of its own", testGuard},
	{"the agent terminates a process past its slice, then all of a container, in a cgroup of its own", testAgent},
	{"the toolkit's hook starts what carries no limit, and a limit where the driver has them", testToolkit},
}

// TestCgroupV2 runs the scenarios in the machine. Outside it starts the machine and reports, under the same names, what became
// of each there.
func TestCgroupV2(t *testing.T) {
	var report func(*testing.T, layout)
	if vm.Inside() {
		report = runWith(startAgent(t))
	} else {
		report = reportFrom(t, runMachine(t))
	}
	for _, l := range layouts {
		t.Run(l.name, func(t *testing.T) { report(t, l) })
	}
}

// runWith returns what runs the scenarios with a client of the agent's API server, one after the other: the machine is slow.
func runWith(client kubernetes.Interface) func(*testing.T, layout) {
	return func(t *testing.T, l layout) {
		for _, s := range scenarios {
			t.Run(s.name, func(t *testing.T) { s.run(t, l, client) })
		}
	}
}

// result is a line about a test, as go test -v writes it.
var result = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+) \(`)

// reportFrom returns what fails for each scenario that has not passed in the machine.
func reportFrom(t *testing.T, output string) func(*testing.T, layout) {
	results := map[string]string{}
	for _, m := range result.FindAllStringSubmatch(output, -1) {
		results[m[2]] = m[1]
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the machine's output:\n%s", output)
		}
	})
	return func(t *testing.T, l layout) {
		for _, s := range scenarios {
			t.Run(s.name, func(t *testing.T) {
				if got := results[t.Name()]; got != "PASS" {
					t.Errorf("in the machine: %q", got)
				}
			})
		}
	}
}

// within is how long the machine may take. It is a tenth of that without neighbors.
const within = 4 * time.Minute

// runMachine returns what this test wrote in the machine.
func runMachine(t *testing.T) string {
	t.Helper()
	if !cluster.Wanted("vm") {
		t.Skip("starts a virtual machine: set GPUSLICE_TEST=vm to run it")
	}
	packages, err := vm.Fetch(t.Context(), "crun")
	if errors.Is(err, vm.ErrUnsupported) && os.Getenv("E2E_OPTIONAL") == "1" {
		t.Skip("skipped, since E2E_OPTIONAL is 1: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files, err := build(t.Context(), packages, dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	machine := vm.Machine{Packages: packages, Dir: dir, Files: files, Kernel: "cgroup_no_v1=all"}
	output, err := machine.Run(ctx, "-test.v", "-test.run="+wanted(t), "-test.timeout=210s")
	if err != nil {
		t.Error(err)
	}
	return output
}

// wanted returns which tests were asked for outside, so that one scenario can be run alone.
func wanted(t *testing.T) string {
	if run := flag.Lookup("test.run").Value.String(); run != "" {
		return run
	}
	return "^" + t.Name() + "$"
}

// rootfs is the folder in the machine that is the root of every container, with all of their programs.
const rootfs = "/rootfs"

// Programs in it.
const (
	guardProgram  = "/gpuslice-guard"
	agentProgram  = "/gpuslice-agent"
	tenantProgram = "/tenant"
	pauseProgram  = "/pause"
)

// build returns the files of the machine: the container runtimes, and what runs in containers.
func build(ctx context.Context, packages vm.Packages, dir string) (map[string]string, error) {
	bin, err := cluster.Build(ctx, os.Stderr, append(cluster.Containers(), cluster.Toolkit())...)
	if err != nil {
		return nil, err
	}
	crun, err := packages.Find("/usr/bin/crun")
	if err != nil {
		return nil, err
	}
	files, err := image.Program("/usr/bin/crun", crun, string(packages))
	if err != nil {
		return nil, err
	}
	files["/usr/bin/runc"], files[rootfs+pauseProgram] = bin["runc"], bin["pause"]
	if err := addProgram(files, "", hookProgram, bin["nvidia-cdi-hook"]); err != nil {
		return nil, err
	}
	nvml, err := fakegpu.Build(ctx, "")
	if err != nil {
		return nil, err
	}
	files[newDriver+library] = nvml
	if files[oldDriver+library], err = fakegpu.Build(ctx, "", "nvmlDeviceSetMemoryLimits_v1", "nvmlDeviceGetMemoryLimits_v1"); err != nil {
		return nil, err
	}
	for path, p := range map[string]cluster.Program{
		guardProgram:  {Package: "./cmd/guard", CGO: true},
		agentProgram:  {Package: "./cmd/agent", CGO: true},
		tenantProgram: {Package: "./test/fakegpu/tenant"},
	} {
		out := filepath.Join(dir, strings.TrimPrefix(path, "/"))
		if err := cluster.Compile(ctx, p, out); err != nil {
			return nil, err
		}
		if err := addProgram(files, rootfs, path, out); err != nil {
			return nil, err
		}
	}
	return files, addProgram(files, rootfs, library, nvml)
}

// addProgram adds a program or library, and what it needs, below a root.
func addProgram(files map[string]string, root, path, from string) error {
	needed, err := image.Program(path, from)
	for name, source := range needed {
		files[root+name] = source
	}
	return err
}
