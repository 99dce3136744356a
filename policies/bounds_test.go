package policies_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/rawpod"
)

// sliced is a policy under which every pod with a GPU gets a slice, and a pool for it.
func sliced(t *testing.T) policies.Input {
	t.Helper()
	policy, problems := config.Parse("test",
		[]byte("apiVersion: gpuslice.dev/v1\nmode: transparent\nstrategies: [time-slicing]\ndefaultSlice: {memory: 1Gi}\n"))
	if len(problems) > 0 {
		t.Fatal(problems.ToAggregate())
	}
	return policies.Input{Policy: policy, Namespace: api.Namespace{Name: "n"}, Pools: []pools.Pool{
		{Name: "l4", Site: "l4", Resource: nvidia.SharedGPU, Strategy: "time-slicing", DeviceMemory: 23034, Reserve: 692, Replicas: 4}}}
}

func podWith(containers ...string) []byte {
	return []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"containers":[` + strings.Join(containers, ",") + `]}}`)
}

func gpuContainer(name string) string {
	return fmt.Sprintf(`{"name":%q,"image":"i","resources":{"limits":{"nvidia.com/gpu":"1"}}}`, name)
}

func TestContainerBound(t *testing.T) {
	t.Parallel()
	t.Run("ten thousand containers are denied at once", func(t *testing.T) {
		t.Parallel()
		containers := make([]string, 10_000)
		for i := range containers {
			containers[i] = gpuContainer(fmt.Sprintf("c%d", i))
		}
		start := time.Now()
		raw, violation, err := rawpod.Decode(podWith(containers...))
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprint(violation)
		if violation == nil {
			in := sliced(t)
			in.Pod = raw.Pod
			text = policies.Decide(in).Message()
		}
		if !strings.Contains(text, "too") {
			t.Errorf("it says %q", text)
		}
		if spent := time.Since(start); spent > 5*time.Second {
			t.Errorf("it took %s", spent)
		}
	})
	t.Run("containers beyond the bound are counted in the denial", func(t *testing.T) {
		t.Parallel()
		for n, denied := range map[int]bool{64: false, 65: true} {
			containers := make([]string, n)
			for i := range containers {
				containers[i] = gpuContainer(fmt.Sprintf("c%d", i))
			}
			raw, violation, err := rawpod.Decode(podWith(containers...))
			if err != nil || violation != nil {
				t.Fatal(err, violation)
			}
			in := sliced(t)
			in.Pod = raw.Pod
			d := policies.Decide(in)
			if want := fmt.Sprintf("the pod has %d; a pod with GPUs may have 64", n); denied != strings.Contains(d.Message(), want) {
				t.Errorf("%d containers: %s: %s", n, d.Outcome, d.Message())
			}
		}
	})
}

func TestUnreadablePod(t *testing.T) {
	t.Parallel()
	t.Run("is an error or a denial", func(t *testing.T) {
		t.Parallel()
		quantity := func(q string) []byte {
			return podWith(`{"name":"a","resources":{"limits":{"nvidia.com/gpu":` + q + `}}}`)
		}
		for name, c := range map[string]struct {
			pod       []byte
			violation string // what the denial says; empty: it is no pod at all
		}{
			"nothing":                  {pod: nil},
			"null":                     {pod: []byte("null")},
			"a list":                   {pod: []byte("[]")},
			"half a pod":               {pod: []byte(`{"spec":{`)},
			"an empty quantity":        {pod: quantity(`""`)},
			"a quantity of words":      {pod: quantity(`"one"`), violation: `"one" is not a quantity that is read`},
			"digits of another script": {pod: quantity(`"１"`), violation: "is not a quantity that is read"},
			"an exponent too far":      {pod: quantity(`"1e10000000"`), violation: `"1e10000000" is not a quantity that is read`},
			"a thousand digits":        {pod: quantity(`"` + strings.Repeat("9", 1000) + `"`), violation: "is not a quantity that is read"},
			"five megabytes":           {pod: podWith(strings.Repeat(" ", 5<<20)), violation: "at most 4194304 are read"},
			"a million empty objects":  {pod: podWith(strings.Repeat("{},", 1_000_000) + "{}"), violation: "more than 20000 objects and lists"},
		} {
			start := time.Now()
			_, violation, err := rawpod.Decode(c.pod)
			switch {
			case c.violation == "" && err == nil:
				t.Errorf("%s is read (%v)", name, violation)
			case c.violation != "" && (violation == nil || !strings.Contains(violation.String(), c.violation)):
				t.Errorf("%s: %v, %v", name, violation, err)
			}
			if spent := time.Since(start); spent > 5*time.Second {
				t.Errorf("%s took %s", name, spent)
			}
		}
	})
}

func TestContainersAnnotation(t *testing.T) {
	t.Parallel()
	t.Run("is bounded before it is decoded", func(t *testing.T) {
		t.Parallel()
		bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
		for c := 'b'; c < 'i'; c++ {
			bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
		}
		for name, c := range map[string]struct{ text, want string }{
			"more than is read":      {strings.Repeat("#", 17<<10), "at most 16384 are read"},
			"a bomb of aliases":      {bomb, "annotation gpuslice.dev/containers"},
			"a container a thousand": {`{"` + strings.Repeat("x", 1000) + `": {"memory": "1Gi"}}`, "is not a container of this pod"},
			"not a number":           {`{"a": {"fraction": .nan}}`, "annotation gpuslice.dev/containers"},
			"endless":                {`{"a": {"fraction": .inf}}`, "annotation gpuslice.dev/containers"},
			"two documents":          {"a: {memory: 1Gi}\n---\na: {memory: 2Gi}\n", "annotation gpuslice.dev/containers"},
			"an exponent":            {`{"a": {"memory": 1e400}}`, "annotation gpuslice.dev/containers"},
		} {
			in := sliced(t)
			raw, violation, err := rawpod.Decode(podWith(gpuContainer("a")))
			if err != nil || violation != nil {
				t.Fatal(err, violation)
			}
			in.Pod = raw.Pod
			in.Pod.Annotations = map[string]string{api.AnnotationContainers: c.text}
			d := policies.Decide(in)
			if d.Outcome != policies.Denied || !strings.Contains(d.Message(), c.want) || len(d.Message()) > 600 {
				b, _ := json.Marshal(d.Outcome)
				t.Errorf("%s: %s: %s", name, b, d.Message())
			}
		}
	})
}

// TestTooManyNames: a request in the words of other systems that is too long to be read is no request for the default slice.
func TestTooManyNames(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]string{
		"":              "other systems: more than 512 names in one pod are not read; for a slice write one of gpuslice's labels",
		"hami":          "spelling of other systems: more than 512 names in one pod are not read",
		"tensor-fusion": "spelling of other systems: more than 512 names in one pod are not read",
	} {
		in := sliced(t)
		if accept != "" {
			in.Policy.Accept = []string{accept}
		}
		in.Pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "a", Resources: corev1.ResourceRequirements{
					Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("1"), "nvidia.com/gpumem": resource.MustParse("3000")},
				},
			}}}}
		for i := range 520 {
			in.Pod.Annotations[fmt.Sprintf("nvidia.com/container.c%d.gpu-memory.request", i)] = "8Gi"
		}
		d := policies.Decide(in)
		if got := strings.Join(append(d.Warnings, d.Message()), "\n"); !strings.Contains(got, want) ||
			(accept != "") != (d.Outcome == policies.Denied) {
			t.Errorf("accept %q: %s, %s, want %s", accept, d.Outcome, got, want)
		}
	}
}
