package pods

import (
	"net/http"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/test/scenarios"
)

// debugged is a live pod with an ephemeral container more.
func debugged(t *testing.T, pod, container string) string {
	t.Helper()
	out := strings.Replace(pod, `"spec":{`, `"spec":{"ephemeralContainers":[`+container+`],`, 1)
	if out == pod {
		t.Fatal("nothing was added")
	}
	return out
}

func TestEphemeralContainers(t *testing.T) {
	t.Parallel()
	old := live(t)
	for name, tt := range map[string]struct {
		container, warning string
		document           string
		denied             string
	}{
		"a plain one": {container: `{"name":"debugger","image":"busybox"}`},
		"one that names devices": {
			container: `{"name":"debugger","image":"busybox","env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}]}`,
		},
		"a privileged one": {container: `{"name":"debugger","image":"busybox","securityContext":{"privileged":true}}`,
			denied: "is privileged"},
		"a privileged one, under warn": {container: `{"name":"debugger","image":"busybox","securityContext":{"privileged":true}}`,
			document: "enforcementMode: warn", warning: "is privileged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChain(governed(t, tt.document))
			request := podReview("team-a", debugged(t, old, tt.container))
			request.SubResource, request.Operation = "ephemeralcontainers", admissionv1.Update
			request.OldObject = runtime.RawExtension{Raw: []byte(old)}
			response := handle(t, c.mutating, request)
			if !response.Allowed || len(response.Patch) == 0 {
				t.Fatalf("not put right: %+v", response)
			}
			after := patched(t, string(request.Object.Raw), response)
			if !strings.Contains(after, `"NVIDIA_VISIBLE_DEVICES","value":"void"`) {
				t.Fatalf("it gets devices:\n%s", after)
			}
			request.Object.Raw = []byte(after)
			response = handle(t, c.validating, request)
			if response.Allowed != (tt.denied == "") || tt.denied != "" && !strings.Contains(response.Result.Message, tt.denied) {
				t.Errorf("answered %+v", response.Result)
			}
			if tt.warning != "" && !strings.Contains(strings.Join(response.Warnings, " "), tt.warning) {
				t.Errorf("the warnings are %q", response.Warnings)
			}
		})
	}
}

func TestVerifierEphemeral(t *testing.T) {
	t.Run("a container that was not mutated is denied", func(t *testing.T) {
		t.Parallel()
		old := live(t)
		c := newChain(governed(t, ""))
		request := podReview("team-a", debugged(t, old, `{"name":"debugger","image":"nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04"}`))
		request.SubResource, request.Operation, request.OldObject = "ephemeralcontainers",
			admissionv1.Update, runtime.RawExtension{Raw: []byte(old)}
		if response := handle(t, c.validating, request); response.Allowed ||
			!strings.Contains(response.Result.Message, `NVIDIA_VISIBLE_DEVICES: "void"`) {
			t.Errorf("answered %+v", response)
		}
	})
}

func TestSubresources(t *testing.T) {
	t.Parallel()
	old := live(t)
	for name, tt := range map[string]struct {
		subresource, object, old string
		code                     int32
	}{
		"no object":                 {"ephemeralcontainers", "", old, http.StatusBadRequest},
		"no old object":             {"resize", old, "", http.StatusBadRequest},
		"a subresource of others'":  {"status", "{", "{", http.StatusOK},
		"a resize that keeps ours":  {"resize", old, old, http.StatusOK},
		"an old one that is no pod": {"resize", old, "[]", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChain(governed(t, ""))
			request := podReview("team-a", tt.object)
			request.SubResource, request.Operation, request.OldObject = tt.subresource, admissionv1.Update, runtime.RawExtension{Raw: []byte(tt.old)}
			for _, response := range []*admissionv1.AdmissionResponse{handle(t, c.mutating, request), handle(t, c.validating, request)} {
				switch {
				case tt.code == http.StatusOK && (!response.Allowed || len(response.Patch) > 0):
					t.Errorf("answered %+v", response)
				case tt.code != http.StatusOK && response.Allowed && tt.subresource == "ephemeralcontainers":
					t.Errorf("answered %+v", response)
				}
			}
		})
	}
}

func TestVerifierResize(t *testing.T) {
	t.Run("the guard is not resized", func(t *testing.T) {
		t.Parallel()
		source := governed(t, "")
		source.in.Guard, source.in.Pools[0].DriverMajor = scenarios.Guard(), 580
		c := newChain(source)
		old := patched(t, asking("4Gi"), handle(t, c.mutating, podReview("team-a", asking("4Gi"))))
		changed := strings.Replace(old, `"memory":"64Mi"`, `"memory":"8Mi"`, 1)
		if changed == old {
			t.Fatalf("the pod has no guard:\n%s", old)
		}
		request := podReview("team-a", changed)
		request.SubResource, request.Operation, request.OldObject = "resize", admissionv1.Update, runtime.RawExtension{Raw: []byte(old)}
		if response := handle(t, c.validating, request); response.Allowed ||
			!strings.Contains(response.Result.Message, "belongs to gpuslice; leave it out") {
			t.Errorf("answered %+v", response)
		}
	})
}
