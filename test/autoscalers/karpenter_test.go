package autoscalers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
)

// TestKarpenter follows the page with Karpenter itself.
func TestKarpenter(t *testing.T) {
	k := startKarpenter(t)
	k.awaitUnfit(team, k.Block("kind: Pod\n"))
	if claims := k.claims(); len(claims) > 0 {
		t.Fatalf("without an overlay %d nodes start", len(claims))
	}

	k.apply(k.Block("kind: NodeOverlay"))
	k.create(team, k.Block("kind: Pod\n"), 5)
	k.awaitNodes("with the overlay, 6 slices in 4 of a GPU", team, 6, 2)
	k.deletePods(team)
	k.awaitNodes("back to none", team, 0, 0)
	k.create(team, k.Block("kind: Pod\n"), 1)
	k.awaitNodes("again from none", team, 1, 1)
	k.deletePods(team)
	k.awaitNodes("and back", team, 0, 0)

	migPod := unmanaged(mig, "")
	k.awaitUnfit(plain, migPod)
	k.apply(strings.NewReplacer("l4-shared", "a100-mig", "[g6.xlarge, g6.2xlarge]", "[p4d.24xlarge]", shared+`: "4"`, mig+`: "7"`).Replace(
		k.Block("kind: NodeOverlay")))
	k.create(plain, migPod, 7)
	k.awaitNodes("8 MIG instances in 7 of a node", plain, 8, 2)
	k.deletePods(plain)
	k.awaitNodes("back from MIG", plain, 0, 0)
}

type karpenter struct {
	*lab
	claim dynamic.ResourceInterface
}

func startKarpenter(t *testing.T) *karpenter {
	t.Helper()
	cluster.Need(t)
	if !cluster.Wanted("matrix") {
		t.Skip("compiles Karpenter: set GPUSLICE_TEST=apiserver,matrix to run it")
	}
	bin, err := cluster.Build(t.Context(), os.Stderr, append(cluster.ControlPlane(), cluster.Karpenter())...)
	if err != nil {
		t.Fatal(err)
	}
	k := &karpenter{lab: start(t, "deploy/recipes/karpenter.md", bin)}
	k.offers = map[string]corev1.ResourceList{
		"l4-shared": {shared: resource.MustParse("4"), whole: resource.MustParse("0")},
		"a100-mig":  {mig: resource.MustParse("7"), whole: resource.MustParse("0")},
	}
	k.log = "karpenter.log"
	k.startProvider()
	return k
}

// instanceTypes are what the provider sells.
const instanceTypes = `[
{"name": "g6.xlarge", "architecture": "amd64", "operatingSystems": ["linux"], "resources": {"cpu": "4", "memory": "16Gi", "pods": "110", "nvidia.com/gpu": "1"}, "offerings": [` + offering + `]},
{"name": "p4d.24xlarge", "architecture": "amd64", "operatingSystems": ["linux"], "resources": {"cpu": "96", "memory": "1152Gi", "pods": "110", "nvidia.com/gpu": "8"}, "offerings": [` + offering + `]}
]`

const offering = `{"Price": 1, "Available": true, "Requirements": [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}]}`

// startProvider starts Karpenter with the page's NodePool, and another one. What names AWS names the provider instead.
func (k *karpenter) startProvider() {
	k.Helper()
	crds, err := cluster.KarpenterCRDs(k.Context())
	k.Must(err)
	k.apply(string(bytes.Join(crds, []byte("\n---\n"))))
	k.claim = dynamic.NewForConfigOrDie(k.Server.Config).Resource(schema.GroupVersionResource{Group: "karpenter.sh",
		Version: "v1", Resource: "nodeclaims"})
	types := filepath.Join(k.TempDir(), "types.json")
	k.Must(os.WriteFile(types, []byte(instanceTypes), 0o600))
	k.Must(k.Server.StartKarpenter(types))
	pool := strings.NewReplacer("karpenter.k8s.aws/instance-family", "karpenter.kwok.sh/instance-family", "karpenter.k8s.aws",
		"karpenter.kwok.sh", "EC2NodeClass", "KWOKNodeClass").
		Replace(k.Block("kind: NodePool"))
	k.await("the definitions", func() string { // a new definition is not served at once
		var err error
		if k.Apply, err = install.NewApplier(k.Server.Config); err == nil {
			err = k.Apply.Apply(k.Context(),
				[]byte("{apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: gpu}}\n---\n"+pool+
					"\n---\n"+strings.NewReplacer("l4-shared", "a100-mig", "[g6]", "[p4d]").Replace(pool)))
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

func (k *karpenter) claims() []unstructured.Unstructured {
	k.Helper()
	list, err := k.claim.List(k.Context(), metav1.ListOptions{})
	k.Must(err)
	return list.Items
}

// awaitNodes returns once so many pods are bound to so many nodes, and there are no others.
func (k *karpenter) awaitNodes(what, namespace string, pods, nodes int) {
	k.Helper()
	most := 0
	k.await(what, func() string {
		have := len(k.runNodes())
		most = max(most, len(k.claims()))
		bound, on := k.bound(namespace)
		if bound != pods || on != nodes || have != nodes || len(k.claims()) != nodes {
			return fmt.Sprintf("%d pods on %d nodes of %d (%d NodeClaims); want %d on %d", bound, on, have, len(k.claims()), pods, nodes)
		}
		return ""
	})
	if pods > 0 && most > nodes {
		k.Errorf("%s: %d nodes started, want %d", what, most, nodes)
	}
}

// awaitUnfit creates a pod, and returns once Karpenter reports that no instance type has its resources. It reports once for each pod, and
// before it knows its NodePools something else.
func (k *karpenter) awaitUnfit(namespace, manifest string) {
	k.Helper()
	k.await("Karpenter starts nothing without an overlay", func() string {
		if len(k.pods(namespace)) == 0 {
			k.create(namespace, manifest, 1)
		}
		message := k.event(namespace, "karpenter", "FailedScheduling")
		if strings.Contains(message, "enough resources") {
			return ""
		}
		if message != "" {
			k.deletePods(namespace)
			return message
		}
		return "no Event of Karpenter"
	})
}
