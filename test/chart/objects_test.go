package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/webhook/leader/peaks"
	"github.com/gpuslice/gpuslice/webhook/leader/usage"
)

// objects names everything that the API server has, but what comes and goes by itself: Events, what the cluster's own parts
// write about themselves, what follows a Service, and what the controller manager makes in every namespace.
func objects(t *testing.T, config *rest.Config) []string {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	lists, err := d.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || slices.Contains([]string{"Event", "ComponentStatus", "Endpoints", "IPAddress"}, r.Kind) {
				continue
			}
			found, err := client.Resource(gv.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("list %s: %v", r.Name, err)
			}
			for _, o := range found.Items {
				if slices.Contains([]string{metav1.NamespaceDefault, metav1.NamespaceSystem, "kube-node-lease"}, o.Namespace) ||
					o.Name == "kube-root-ca.crt" {
					continue
				}
				if strings.HasPrefix(o.Name, usage.NamePrefix) || strings.HasPrefix(o.Name, peaks.NamePrefix) { // once a leader has led for a minute
					continue
				}
				if r.Kind != "ServiceAccount" || o.Name != "default" {
					out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", r.Kind, o.Namespace, o.Name)))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// awaitObjects waits until the API server has nothing but what is wanted: the garbage collector takes a moment.
func awaitObjects(t *testing.T, config *rest.Config, want []string) {
	t.Helper()
	slices.Sort(want)
	eventually(t, 2*time.Minute, func() string {
		if diff := cmp.Diff(want, objects(t, config)); diff != "" {
			return "something is left, or missing (-want +got)\n" + diff
		}
		return ""
	})
}

// eventually asks again and again until wrong says nothing, and ends the test with what it says otherwise.
func eventually(t *testing.T, within time.Duration, wrong func() string) {
	t.Helper()
	again := time.NewTicker(250 * time.Millisecond)
	defer again.Stop()
	end := time.After(within)
	for {
		text := wrong()
		if text == "" {
			return
		}
		select {
		case <-end:
			t.Fatalf("after %s: %s", within, text)
		case <-again.C:
		}
	}
}
