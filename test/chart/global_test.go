package chart

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestGlobal renders the values that a chart of charts sets for all of them.
func TestGlobal(t *testing.T) {
	t.Parallel()
	t.Run("the registry is that of both images", func(t *testing.T) {
		t.Parallel()
		h := newHelm(t, "")
		for repository, want := range map[string]string{
			"gpuslice":                 "mirror.test/copies/gpuslice",
			"registry.test/gpuslice":   "mirror.test/copies/gpuslice",
			"localhost:5000/gpuslice":  "mirror.test/copies/gpuslice",
			"localhost/team/gpuslice":  "mirror.test/copies/team/gpuslice",
			"team.example/a.b/webhook": "mirror.test/copies/a.b/webhook",
		} {
			objects := h.render(version("v1"),
				"--set=global.imageRegistry=mirror.test/copies,image.repository="+repository+",guard.image.repository="+repository+"-guard")
			c := deploymentIn(t, objects).Containers[0]
			guard := slices.IndexFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == "GPUSLICE_GUARD_IMAGE" })
			if c.Image != want+":v1" || c.Env[guard].Value != want+"-guard:v1" {
				t.Errorf("%s: the images are %s and %s, want %s", repository, c.Image, c.Env[guard].Value, want)
			}
			if got, _, _ := unstructured.NestedSlice(strictPolicy(t, objects), "spec",
				"variables"); got[0].(map[string]any)["expression"] != "'"+want+"-guard:v1'" {
				t.Errorf("%s: the strict policy knows the guard as %v", repository, got[0])
			}
		}
	})
	t.Run("the pull secrets are added, in both of the forms that charts have", func(t *testing.T) {
		t.Parallel()
		got := deploymentIn(t, newHelm(t, "").render(version("v1"), `--set-json=global.imagePullSecrets=["all",{"name":"more"},"own"]`,
			"--set=image.pullSecrets={own}")).ImagePullSecrets
		if want := []corev1.LocalObjectReference{{Name: "own"}, {Name: "all"}, {Name: "more"}}; !slices.Equal(got, want) {
			t.Errorf("pull secrets %v, want %v", got, want)
		}
	})
	t.Run("what other charts read is no error", func(t *testing.T) {
		t.Parallel()
		h := newHelm(t, "")
		if h.run("template", release, chartFolder, version("v1"), "--set=global.storageClass=fast") != h.run("template", release,
			chartFolder, version("v1"), "--set=global=null") {
			t.Error("a value of another chart changes something")
		}
	})
}

func deploymentIn(t *testing.T, objects []*unstructured.Unstructured) corev1.PodSpec {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			return convert(t, o).Spec.Template.Spec
		}
	}
	t.Fatal("no Deployment is rendered")
	return corev1.PodSpec{}
}

func strictPolicy(t *testing.T, objects []*unstructured.Unstructured) map[string]any {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == "ValidatingAdmissionPolicy" && o.GetName() == "gpuslice-strict" {
			return o.Object
		}
	}
	t.Fatal("no strict policy is rendered")
	return nil
}
