package fleet_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/program"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/test/commandline"
)

// dividable is a cluster with an L4 for each of eight pods and an A100 for each of eight others, none of which needs more than a part, on
// the A100 a MIG instance.
func dividable(t *testing.T) string {
	t.Helper()
	f := inventory.New(commandline.Now())
	for _, p := range []inventory.Pool{
		{Name: "l4", Product: "NVIDIA-L4", DeviceMemory: 23034},
		{Name: "a100", Product: "NVIDIA-A100-SXM4-80GB", DeviceMemory: 81920},
	} {
		p.Resource, p.Strategy, p.Replicas, p.Share = "nvidia.com/gpu", "exclusive", 1, 1
		f.Pools = append(f.Pools, p)
		strategy := map[string]api.StrategyName{"l4": "time-slicing", "a100": "mig"}[p.Name]
		for i := range 8 {
			name := fmt.Sprintf("%s-%d", p.Name, i)
			labels := map[string]string{"nvidia.com/gpu.product": p.Product, "nvidia.com/device-plugin.config": "any"}
			f.Nodes = append(f.Nodes,
				inventory.Node{Name: name, Labels: labels,
					GPUs:        inventory.GPUs{Product: p.Product, Count: 1, Memory: p.DeviceMemory, MIG: p.Name == "a100"},
					Allocatable: inventory.Resources{"cpu": 64000, "memory": 256 << 30, "pods": 110, "nvidia.com/gpu": 1},
					Offers:      []inventory.Offer{{Pool: p.Name, Units: 1}}})
			f.Pods = append(f.Pods,
				inventory.Pod{Namespace: "team", Name: name, Node: name, Phase: corev1.PodRunning, Requests: inventory.Resources{"nvidia.com/gpu": 1},
					Slices: []inventory.Slice{{Container: "main", Pool: p.Name, Resource: "nvidia.com/gpu", Count: 1, Memory: 5000, Strategy: strategy}}})
		}
	}
	var b bytes.Buffer
	if err := inventory.Write(&b, f); err != nil {
		t.Fatal(err)
	}
	commandline.Write(t, "fleet.json.gz", b.Bytes())
	return "fleet.json.gz"
}

// todaysObjects have a configuration under a name that a plan would use, layouts in the style of a person, and a policy that allows less.
const todaysObjects = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: sharing, namespace: gpu-operator, resourceVersion: "7", annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}
  data:
    any: "version: v1\nflags: {migStrategy: none}\n"
    time-slicing-4: "version: v1\nsharing: {timeSlicing: {renameByDefault: true, failRequestsGreaterThanOne: true, resources: [{name: nvidia.com/gpu, replicas: 2}]}}\n"
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: partitions, namespace: gpu-operator}
  data:
    config.yaml: |
      version: v1
      mig-configs:
        plan-1: # ours
          - {devices: all, mig-enabled: false}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: default, namespace: gpuslice-system, labels: {gpuslice.dev/policy: "true"}}
  data:
    policy.yaml: |
      apiVersion: gpuslice.dev/v1
      # what finance agreed to
      strategies: [exclusive]
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: other, namespace: default}
  data: {key: value}
`

// labelLine is a line of rollout.sh.
var labelLine = regexp.MustCompile(`kubectl label node (\S+) --overwrite (.*?)( &&|\n)`)

// TestPlanChangesAccepted: doctor accepts the files of a plan, beside nodes with the labels that the plan gives them.
func TestPlanChangesAccepted(t *testing.T) {
	for _, c := range []struct {
		args    string
		against bool
		files   []string // beside rollout.sh and changes.diff
		diff    []string // parts of changes.diff
	}{
		{"--strategies time-slicing", false, []string{"device-plugin-configs.yaml"},
			[]string{`-metadata.labels[nvidia.com/device-plugin.config]: "any"` + "\n" +
				`+metadata.labels[nvidia.com/device-plugin.config]: "time-slicing-4"`, "+  time-slicing-4: |"}},
		{"--strategies mps,mig", false, []string{"device-plugin-configs.yaml", "mig-parted-config.yaml"},
			[]string{"+  mps-4: |", `+metadata.labels[nvidia.com/mig.config]: "plan-1"`}},
		{"--strategies claim", false, []string{"device-plugin-configs.yaml", "policy.yaml"},
			[]string{"strategies: [mig, mps, time-slicing, exclusive, claim]"}},
		{"--strategies mig,time-slicing", true, []string{"device-plugin-configs.yaml", "mig-parted-config.yaml", "policy.yaml"},
			[]string{"+  time-slicing-4-2: |", `+metadata.labels[nvidia.com/device-plugin.config]: "time-slicing-4-2"`, "+      plan-1-2:",
				"     # what finance agreed to\n-    strategies: [exclusive]\n+    strategies: [exclusive, "}},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Chdir(t.TempDir())
			args := "plan --from " + dividable(t) + " --changes changes " + c.args
			if c.against {
				commandline.Write(t, "today.yaml", []byte(todaysObjects))
				args += " --against today.yaml"
			}
			commandline.Answer(t, args)
			diff, err := os.ReadFile("changes/changes.diff")
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range c.diff {
				if !strings.Contains(string(diff), part) {
					t.Errorf("changes.diff lacks %q:\n%s", part, diff)
				}
			}
			for _, unwanted := range []string{"last-applied", "resourceVersion", "key: value"} {
				if strings.Contains(string(diff), unwanted) {
					t.Errorf("%q is in changes.diff:\n%s", unwanted, diff)
				}
			}
			entries, err := os.ReadDir("changes")
			if err != nil || len(entries) != len(c.files)+2 {
				t.Errorf("%v, %v, want %q and two", entries, err, c.files)
			}
			for _, name := range c.files {
				if !commandline.FileExists("changes/" + name) {
					t.Errorf("%s is missing", name)
				}
			}
			acceptedByDoctor(t)
		})
	}
}

// acceptedByDoctor runs doctor over the files of a plan: alone, and with the nodes as rollout.sh labels them.
func acceptedByDoctor(t *testing.T) {
	t.Helper()
	script, err := os.ReadFile("changes/rollout.sh")
	if err != nil {
		t.Fatal(err)
	}
	nodes := ""
	for _, m := range labelLine.FindAllStringSubmatch(string(script), -1) {
		nodes += "apiVersion: v1\nkind: Node\nmetadata:\n  name: " + m[1] + "\n  labels:\n"
		for _, l := range strings.Fields(m[2]) {
			nodes += "    " + strings.Replace(l, "=", ": ", 1) + "\n"
		}
		nodes += "---\n"
	}
	if nodes == "" {
		t.Error("rollout.sh labels no node")
	}
	commandline.Write(t, "nodes.yaml", []byte(nodes))
	for _, args := range []string{"doctor -f changes -o json", "doctor -f changes -f nodes.yaml -o json"} {
		var out, errs bytes.Buffer
		program.Run(t.Context(), strings.Fields("gpuslice "+args), commandline.StreamsTo(&out, &errs))
		var found struct {
			Items []struct {
				Check, Level, Summary string
				Evidence              any
			}
		}
		if err := json.Unmarshal(out.Bytes(), &found); err != nil {
			t.Fatalf("%s: %v: %s%s", args, err, out.String(), errs.String())
		}
		for _, item := range found.Items {
			ofFiles := strings.HasPrefix(item.Check, "plugin-") || strings.HasPrefix(item.Check, "mig-") ||
				item.Check == "sharing" || item.Check == "policies"
			if ofFiles && (item.Level == "problem" || item.Level == "warning") {
				t.Errorf("%s: %+v", args, item)
			}
		}
	}
}

// TestPlanChangesLive: without files, today's ConfigMaps are those of the cluster.
func TestPlanChangesLive(t *testing.T) {
	t.Run("as they are", func(t *testing.T) {
		liveFleet(t)
		liveChanges(t)
	})
	t.Run("they may not be read", func(t *testing.T) {
		liveFleet(t, "daemonsets")
		var out, errs bytes.Buffer
		if code := program.Run(t.Context(), strings.Fields("gpuslice plan --changes changes"), commandline.StreamsTo(&out, &errs)); code == 0 ||
			!strings.Contains(errs.String(), "name a file with today's ConfigMaps by --against") {
			t.Errorf("exit %d: %s", code, errs.String())
		}
	})
}

// liveChanges looks at the changes of a plan for the world of testdata/fleet.txtar.
func liveChanges(t *testing.T) {
	t.Helper()
	const want = "1 pods have a shared GPU in the plan, and policy gpuslice-system/agents does not allow it: add claim"
	if answer := commandline.Answer(t, "plan --strategies claim --changes changes"); !strings.Contains(answer, want) {
		t.Errorf("the plan lacks %q:\n%s", want, answer)
	}
	diff, err := os.ReadFile("changes/changes.diff")
	if err != nil {
		t.Fatal(err)
	}
	if text := string(diff); !strings.Contains(text, "\n   any: |") || !strings.Contains(text, "\n+  whole: |") ||
		!strings.Contains(text, "ConfigMap nvidia/sharing") || strings.Contains(text, "unused") {
		t.Errorf("the difference from the cluster's ConfigMap:\n%s", text)
	}
}
