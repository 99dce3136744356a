package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/cmd/component"
	"github.com/gpuslice/gpuslice/deploy"
)

func TestDeploymentArgs(t *testing.T) {
	// runs the command with what the Deployment says: the defaults, written
	// out where installations differ in them.
	t.Run("are what the command understands", func(t *testing.T) {
		text, err := deploy.Files.ReadFile("40-deployment.yaml")
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), "\n---\n")
		var d appsv1.Deployment
		if err := yaml.Unmarshal([]byte(first), &d); err != nil {
			t.Fatal(err)
		}
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		defineFlags(flags)
		c := d.Spec.Template.Spec.Containers[0]
		for _, e := range c.Env {
			name, ours := strings.CutPrefix(e.Name, "GPUSLICE_")
			if ours && flags.Lookup(strings.ReplaceAll(strings.ToLower(name), "_", "-")) == nil {
				t.Errorf("%s is no setting", e.Name)
			}
			t.Setenv(e.Name, e.Value)
		}
		want := defaults()
		want.GuardImage = "gpuslice/guard:VERSION"
		got, code, stderr := settings(t, c.Args...)
		if diff := cmp.Diff(want, got); diff != "" || code != component.ExitOK {
			t.Errorf("exit %d %s (-want +got)\n%s", code, stderr, diff)
		}
	})
}
