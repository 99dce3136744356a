package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/layout"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/proposal"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
)

// objectsOf are those of --against.
func objectsOf(t *testing.T, text string) *objects {
	t.Helper()
	path := filepath.Join(t.TempDir(), "today.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := options{against: []string{path}}
	o.source.System = "gpuslice-system"
	out, err := o.readObjects(t.Context(), cli.Streams{In: strings.NewReader("")})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestAgainstOthers: ConfigMaps of others that resemble NVIDIA's stay as they are.
func TestAgainstOthers(t *testing.T) {
	const others = `
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: features, namespace: team}, data: {flags.yaml: "flags:\n  dark: true\n", x: "version: 1.2\n"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: photos, namespace: team}, data: {app.yaml: "version: v1\nsharing: public\n"}}
`
	if o := objectsOf(t, others); o.plugin.today != nil || o.mig.today != nil || o.policy.today != nil {
		t.Errorf("ConfigMap %+v is changed", o.plugin.today)
	}
	const nvidias = `{apiVersion: v1, kind: ConfigMap, metadata: {name: plugin, namespace: nvidia}, immutable: false, binaryData: {logo: AAAA}, data: {README: how to, any: "version: 'v1' # the only one\nsharing: {}\n"}}`
	o := objectsOf(t, nvidias+others)
	if o.plugin.next.Name != "plugin" || len(o.plugin.next.Data) != 2 || len(o.plugin.next.BinaryData) != 1 || o.plugin.next.Immutable == nil {
		t.Errorf("%+v", o.plugin.next)
	}
}

// TestAgainstMIG: of several documents the one that the MIG manager reads by default gets the layouts, and one without layouts gets some.
func TestAgainstMIG(t *testing.T) {
	f := &demand.Fleet{Kinds: []demand.Kind{{Strategy: layout.MIG}},
		Nodes: []demand.Node{{Name: "a", Labels: map[string]string{labelPluginConfig: "mig-mixed"}}}}
	p := &proposal.Plan{Next: &layout.Assignment{}, Nodes: []proposal.Nodes{
		{Strategy: layout.MIG, Devices: 1, Changed: true, Names: []string{"a"}, Profiles: []map[string]int{{"1g.10gb": 7}}},
	}}
	for data, key := range map[string]string{
		`{config.yaml: "version: v1\nmig-configs:\n"}`:                                       "config.yaml",
		`{a: "mig-configs: {}\n", config.yaml: "mig-configs: {}\n", z: "mig-configs: {}\n"}`: "config.yaml",
		`{a: "mig-configs: {}\n", b: "mig-configs: {}\n"}`:                                   "a",
	} {
		o := objectsOf(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: mig, namespace: nvidia}, data: `+data+`}`)
		files, err := changesOf(f, p, o)
		if err != nil || !strings.Contains(o.mig.next.Data[key], "plan-1:") || strings.Count(files[migFile], "plan-1:") != 1 {
			t.Errorf("%s: %v\n%s", data, err, files[migFile])
		}
		if diff := files["changes.diff"]; strings.Contains(diff, labelPluginConfig) || !strings.Contains(diff, labelMIGConfig) {
			t.Errorf("a label that stays is in the difference:\n%s", diff)
		}
	}
}

// TestAgainstOperator: the GPU Operator restores its own ConfigMap of the MIG manager, so a copy of it changes, or the one that the cluster
// has beside it.
func TestAgainstOperator(t *testing.T) {
	const operators = `
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: default-mig-parted-config, namespace: gpu-operator}, data: {config.yaml: "version: v1\nmig-configs:\n  all-disabled: [{devices: all, mig-enabled: false}]\n"}}
`
	const own = `
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: ours, namespace: gpu-operator}, data: {ours.yaml: "version: v1\nmig-configs: {}\n"}}
`
	f := &demand.Fleet{Kinds: []demand.Kind{{Strategy: layout.MIG}}, Nodes: []demand.Node{{Name: "a"}}}
	p := &proposal.Plan{Next: &layout.Assignment{}, Nodes: []proposal.Nodes{
		{Strategy: layout.MIG, Devices: 1, Changed: true, Names: []string{"a"}, Profiles: []map[string]int{{"1g.10gb": 7}}},
	}}
	for text, want := range map[string]struct{ name, key string }{operators: {"mig-parted-config", "config.yaml"},
		operators + own: {"ours", "ours.yaml"}, own + operators: {"ours", "ours.yaml"}} {
		o := objectsOf(t, text)
		if files, err := changesOf(f, &proposal.Plan{Next: &layout.Assignment{}}, o); err != nil || files[migFile] != "" {
			t.Errorf("%v: nothing changes, and yet there is\n%s", err, files[migFile])
		}
		files, err := changesOf(f, p, o)
		if err != nil || o.mig.next.Name != want.name || !strings.Contains(o.mig.next.Data[want.key], "plan-1:") {
			t.Errorf("%v, want %v:\n%s", err, want, files[migFile])
		}
		if copied := o.mig.today == nil; copied != strings.Contains(files[migFile], "all-disabled") ||
			copied != strings.Contains(strings.Join(o.notes(f, p), ""), "migManager.config.name=mig-parted-config") {
			t.Errorf("%q\n%s", o.notes(f, p), files[migFile])
		}
	}
}

// TestAllow: a policy stays one, however its strategies are written.
func TestAllow(t *testing.T) {
	const version = "apiVersion: gpuslice.dev/v1\n"
	for _, text := range []string{
		"", version, version + "strategies: [exclusive]\n",
		version + "strategies: [exclusive] # agreed\nmode: opt-in", version + "strategies:\n- exclusive\n",
		version + "'strategies': [exclusive]\n", version + "strategies :\n  [exclusive,\n  mig]\n",
		"{apiVersion: gpuslice.dev/v1, strategies: [exclusive]}\n",
		`{"apiVersion": "gpuslice.dev/v1"}`, version + "---\n",
	} {
		o := newObjects("gpuslice-system").policy
		if text != "" {
			o.next.Data[o.key] = text
		}
		before, _ := config.Parse("default", []byte(text))
		err := o.allow([]api.StrategyName{layout.Claim})
		if err != nil && before == nil && text != "" {
			continue // it is none
		}
		after, problems := config.Parse("default", []byte(o.next.Data[o.key]))
		if err != nil || after == nil || !slices.Contains(after.Strategies, layout.Claim) ||
			before != nil && !slices.Equal(after.Strategies[:len(before.Strategies)], before.Strategies) {
			t.Errorf("%q: %v, %v:\n%s", text, err, problems, o.next.Data[o.key])
		}
	}
}

// TestPlanWidens plans with a policy that allows more: the plan reports that, and leaves no policy of an earlier plan beside it.
func TestPlanWidens(t *testing.T) {
	dir := t.TempDir()
	today := filepath.Join(t.TempDir(), "today.yaml")
	if err := os.WriteFile(today, []byte(policyNamed("ours", "")), 0o600); err != nil {
		t.Fatal(err)
	}
	from := trace(t, "a,96000,393216,8,G2\n", strings.Repeat(pod("p", 1, 1, 1, 250, ""), 8))
	for _, c := range []struct{ args, want string }{
		{"--strategies claim", "replace it and all its limits"},
		{"--strategies claim --against " + today, "has policy ours allow more"}, {"--strategies mps", ""},
	} {
		d := planOf(t, append(strings.Fields(c.args), "--from", from, "--changes", dir)...)
		if notes := strings.Join(d.Notes, "\n"); strings.Contains(notes, policyFile) != (c.want != "") || !strings.Contains(notes, c.want) {
			t.Errorf("%s: %q", c.args, d.Notes)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, policyFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the policy of an earlier plan: %v", err)
	}
}

// TestPolicyStays: the default policy allows no more for nodes that keep their layout and pods that other policies govern.
func TestPolicyStays(t *testing.T) {
	const onlyMIG = "strategies: [mig]\n"
	team := policyNamed("team", "namespaces: {names: [team]}\nstrategies: [time-slicing]\n")
	shared := []layout.Form{{Strategy: layout.TimeSlicing, Replicas: 4}}
	f := &demand.Fleet{Kinds: []demand.Kind{{}}, Nodes: []demand.Node{{Name: "a"}}}
	for _, c := range []struct {
		name, namespace, against string
		changed                  bool
		want                     []api.StrategyName
	}{
		{"an idle node", "", "", false, nil},
		{"an idle node that changes", "", "", true, []api.StrategyName{layout.TimeSlicing}},
		{"a pod under the default", "other", "", false, []api.StrategyName{layout.TimeSlicing}},
		{"a pod under another", "team", team, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &proposal.Plan{Next: &layout.Assignment{Forms: shared},
				Layouts: []proposal.Layout{{Strategy: layout.TimeSlicing, Replicas: 4, NodeDevices: 1}},
				Nodes:   []proposal.Nodes{{Strategy: layout.TimeSlicing, Replicas: 4, Devices: 1, Changed: c.changed, Names: []string{"a"}}}}
			f.Pods = nil
			if c.namespace != "" {
				f.Pods, p.Next.Placed = []demand.Pod{{Namespace: c.namespace, Devices: 1}}, []int{0}
			}
			o := objectsOf(t, policyNamed("default", onlyMIG)+c.against)
			files, err := changesOf(f, p, o)
			if err != nil || (files[policyFile] != "") != (len(c.want) > 0) {
				t.Errorf("%v, written: %q", err, files[policyFile])
			}
			for _, name := range c.want {
				if !strings.Contains(files[policyFile], string(name)) {
					t.Errorf("the policy lacks %s:\n%s", name, files[policyFile])
				}
			}
		})
	}
}

// policyNamed is the ConfigMap of a policy with some further lines.
func policyNamed(name, lines string) string {
	return fmt.Sprintf("---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: gpuslice-system, labels: {gpuslice.dev/policy: \"true\"}}, data: {policy.yaml: %q}}\n",
		name, "apiVersion: gpuslice.dev/v1\n"+lines)
}

// TestPolicyNotes: pods whose policy does not allow what the plan gives them are counted by policy, and a policy that cannot be used is
// reported.
func TestPolicyNotes(t *testing.T) {
	const labeled = "---\n{apiVersion: v1, kind: Namespace, metadata: {name: team-b, labels: {team: b}}}\n"
	f := &demand.Fleet{Kinds: []demand.Kind{{}}, Nodes: []demand.Node{{Name: "a"}}}
	p := &proposal.Plan{Next: &layout.Assignment{Forms: []layout.Form{{Strategy: layout.Claim}}},
		Layouts: []proposal.Layout{{Strategy: layout.Claim, NodeDevices: 1}}}
	for _, pod := range []demand.Pod{{Namespace: "team-a"}, {Namespace: "team-a"}, {Namespace: "team-b"},
		{Namespace: "team-c"}, {Namespace: "team-a", Share: demand.Whole}} {
		pod.Devices = 1
		f.Pods, p.Next.Placed = append(f.Pods, pod), append(p.Next.Placed, 0)
	}
	for _, c := range []struct {
		name, against string
		written       bool
		want          []string // parts of the notes, in their order
	}{
		{"nothing is known", labeled, true, []string{"is a new policy"}},
		{"all are under the default", policyNamed("ours", ""), true, []string{"policy ours allow more"}},
		{"names and labels", policyNamed("ours", "") + policyNamed("a", "namespaces: {names: [team-a]}\nstrategies: [mig]\n") +
			policyNamed("b", "namespaces: {selector: {matchLabels: {team: b}}}\n") + labeled, true,
			[]string{"policy ours allow more", "2 pods have a shared GPU in the plan, and policy gpuslice-system/a does not allow it: add claim",
				"1 pods have a shared GPU in the plan, and policy gpuslice-system/b"}},
		{"one that allows it", policyNamed("ours", "") + policyNamed("a", "namespaces: {names: [team-a]}\nstrategies: [claim]\n"),
			true, []string{"policy ours allow more"}},
		{"one that is off", policyNamed("ours", "") + policyNamed("a", "namespaces: {names: [team-a]}\nmode: \"off\"\n"),
			true, []string{"policy ours allow more"}},
		{"a team's that cannot be used", policyNamed("ours", "") + policyNamed("a", "namespaces: {names: [team-a]}\nstrategy: x\n"),
			true, []string{"policy ours allow more",
				"2 pods have a shared GPU in the plan, and it is unknown whether a policy allows it, because policy gpuslice-system/a cannot be used"}},
		{"a default that cannot be used", policyNamed("default", "strategys: [mig]\n"), false,
			[]string{"policy.yaml is not written, because policy gpuslice-system/default cannot be used",
				"4 pods have a shared GPU in the plan, and it is unknown"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := objectsOf(t, c.against)
			files, err := changesOf(f, p, o)
			if err != nil || (files[policyFile] != "") != c.written {
				t.Errorf("%v, written: %t", err, !c.written)
			}
			notes := o.notes(f, p)
			if len(notes) != len(c.want) {
				t.Fatalf("%q, want %q", notes, c.want)
			}
			for i, part := range c.want {
				if !strings.Contains(notes[i], part) {
					t.Errorf("%q, want %q", notes[i], part)
				}
			}
		})
	}
}
