package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/cmd/component"
	"github.com/gpuslice/gpuslice/deploy"
)

// TestDaemonSetArgs runs the command with what the DaemonSet gives it.
func TestDaemonSetArgs(t *testing.T) {
	text, err := deploy.Files.ReadFile("agent/agent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(text), "\n---\n")
	i := slices.IndexFunc(documents, func(d string) bool { return strings.Contains(d, "kind: DaemonSet") })
	var d appsv1.DaemonSet
	if err := yaml.Unmarshal([]byte(documents[i]), &d); err != nil {
		t.Fatal(err)
	}
	c, env := d.Spec.Template.Spec.Containers[0], map[string]string{}
	cmd := newCommand(nil, nil)
	for _, e := range c.Env {
		name, ours := strings.CutPrefix(e.Name, "GPUSLICE_")
		if ours && cmd.Flags().Lookup(strings.ReplaceAll(strings.ToLower(name), "_", "-")) == nil {
			t.Errorf("%s is no setting", e.Name)
		}
		env[e.Name] = e.Value
		if e.ValueFrom != nil && e.ValueFrom.FieldRef.FieldPath == "spec.nodeName" {
			env[e.Name] = "gpu-1"
		}
	}
	want, _, _ := settings(t, nil, "--node", "gpu-1")
	got, code, stderr := settings(t, env, c.Args...)
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(options{})); diff != "" || code != component.ExitOK {
		t.Errorf("exit %d %s (-want +got)\n%s", code, stderr, diff)
	}
}
