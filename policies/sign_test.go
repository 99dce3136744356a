package policies_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/podedit"
	"github.com/gpuslice/gpuslice/policies/promise"
)

var (
	oldKey = []byte("the key that was, 32 bytes and more")
	newKey = []byte("the key that is, 32 bytes and more.")
)

// promisedPod is a scenario's pod as gpuslice with these keys makes it.
func promisedPod(t *testing.T, keys promise.Keys) *corev1.Pod {
	t.Helper()
	for _, c := range created(t) {
		if c.d.Outcome != policies.Mutated || c.d.Promise.Charge.Slices == 0 {
			continue
		}
		keys.Sign(c.d.Promise)
		pod := podedit.Apply(c.d.Promise, c.in.Pod)
		pod.Namespace = c.d.Promise.Namespace
		return pod
	}
	t.Fatal("no scenario gives a slice")
	return nil
}

func TestSign(t *testing.T) {
	t.Parallel()
	t.Run("only the holder of the key makes a promise", func(t *testing.T) {
		t.Parallel()
		both, fresh := promise.NewKeys(newKey, oldKey), promise.NewKeys(newKey)
		pod := promisedPod(t, promise.NewKeys(oldKey))
		text := pod.Annotations[api.AnnotationPromise]
		if both.PromiseOf(pod) == nil {
			t.Error("the key before is not accepted")
		}
		if fresh.PromiseOf(pod) != nil {
			t.Error("a key that was taken away is accepted")
		}
		if (promise.Keys{}).PromiseOf(pod) != nil {
			t.Error("without a key something is trusted")
		}
		resigned, ok := both.Resign(text)
		if !ok || promise.Unsigned(resigned) != promise.Unsigned(text) {
			t.Error("signing again changed the words, or was not done")
		}
		pod.Annotations[api.AnnotationPromise] = resigned
		if fresh.PromiseOf(pod) == nil {
			t.Error("what was signed again is not accepted")
		}
		if _, again := both.Resign(resigned); again {
			t.Error("signed by the newest key, and signed again")
		}
	})
	t.Run("nobody changes a promise", func(t *testing.T) {
		t.Parallel()
		keys := promise.NewKeys(newKey)
		pod := promisedPod(t, keys)
		text := pod.Annotations[api.AnnotationPromise]
		forged := map[string]string{
			"one byte less":    text[:len(text)-1],
			"a smaller charge": strings.Replace(text, `"charge":{"memory":`, `"charge":{"memory":0`, 1),
			"no signature":     promise.Unsigned(text),
			"two signatures":   text[:len(text)-1] + text[strings.LastIndex(text, `,"sig"`):],
			"a key beside it":  "{" + `"v":1,` + text[1:],
			"empty signature":  promise.Unsigned(text)[:len(promise.Unsigned(text))-1] + `,"sig":""}`,
			"nothing":          "",
		}
		for name, f := range forged {
			changed := pod.DeepCopy()
			changed.Annotations[api.AnnotationPromise] = f
			if keys.PromiseOf(changed) != nil {
				t.Errorf("%s: trusted", name)
			}
		}
		elsewhere := pod.DeepCopy()
		elsewhere.Namespace = "another"
		if keys.PromiseOf(elsewhere) != nil {
			t.Error("trusted in another namespace")
		}
	})
	t.Run("a newer build's promise is trusted for its known fields", func(t *testing.T) {
		t.Parallel()
		keys := promise.NewKeys(newKey)
		pod := promisedPod(t, keys)
		p := keys.PromiseOf(pod)
		p.Version = promise.Version + 1
		keys.Sign(p)
		pod.Annotations[api.AnnotationPromise] = p.Encode()
		got := keys.PromiseOf(pod)
		if got == nil || !got.Newer() || got.Charge != p.Charge {
			t.Fatalf("got %+v", got)
		}
		in := policies.Input{Pod: pod, Namespace: api.Namespace{Name: pod.Namespace},
			Policy: &config.Policy{Name: "a", Mode: modes.OptIn, EnforcementMode: api.EnforceFull}}
		if d := policies.Verify(in, got); d.Outcome != policies.Unchanged {
			t.Errorf("%s: %s", d.Outcome, d.Message())
		}
	})
	t.Run("a short key is none", func(t *testing.T) {
		t.Parallel()
		if promise.NewKeys([]byte("short"), nil).Signs() {
			t.Error("signs with a key that anyone can guess")
		}
	})
}
