package deploy_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// standIns take the place of the frameworks: they record how they were called. A device has 16 GiB.
const standIns = `
import os
calls = []
class Device: total_memory = 16 << 30
class Module:
    def __init__(self, name): self.name = name
    def __getattr__(self, name): return Module(self.name + "." + name)
    def __getitem__(self, i): return "%s[%d]" % (self.name, i)
    def __repr__(self): return self.name
    def __call__(self, *args, **named):
        if self.name == "torch.cuda.get_device_properties": return Device()
        text = "%s(%s)" % (self.name, ", ".join([str(a) for a in args] + ["%s=%s" % (k, v) for k, v in named.items()]))
        if self.name.endswith(("list_physical_devices", "LogicalDeviceConfiguration", "get_default_memory_pool")): return Module(text)
        calls.append(text)
torch, tf, cupy, paddle, onnxruntime, model = [Module(n) for n in ("torch", "tf", "cupy", "paddle", "onnxruntime", "model")]
`

// TestCapLines runs the lines with which a program caps itself, in a slice of 4Gi on a device of 16Gi.
func TestCapLines(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("needs python3 to run the lines: %v", err)
	}
	script := standIns
	for _, p := range pages(t) {
		for _, b := range p.Blocks() {
			if b.Info == "python" {
				script += b.Text
			}
		}
	}
	run := exec.CommandContext(t.Context(), python, "-c",
		script+"\nprint(*calls, sep='\\n')\nprint(os.environ['XLA_PYTHON_CLIENT_MEM_FRACTION'])")
	run.Env = append(os.Environ(), "GPUSLICE_MEMORY_BYTES=4294967296", "GPUSLICE_FRACTION=0.25")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := []string{
		"torch.cuda.set_per_process_memory_fraction(0.21875)",
		"tf.config.set_logical_device_configuration(tf.config.list_physical_devices(GPU)[0], [tf.config.LogicalDeviceConfiguration(memory_limit=3584)])",
		"cupy.get_default_memory_pool().set_limit(size=3758096384)",
		"paddle.set_flags({'FLAGS_gpu_memory_limit_mb': 3584})",
		"onnxruntime.InferenceSession(model, providers=[('CUDAExecutionProvider', {'gpu_mem_limit': 3758096384})])",
		"0.225",
	}
	if got := strings.TrimSpace(string(out)); got != strings.Join(want, "\n") {
		t.Errorf("called\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
