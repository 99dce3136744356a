package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/scenarios"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

// group are the scenarios that share nodes and pools, which a cluster has only one set of.
type group struct {
	source   pools.Source
	pools    string // the default policy's block, as text
	cluster  string // RuntimeClasses and ClusterPolicies, as text
	runtimes pools.Runtimes
	failures guardaccess.Failures
	cases    []scenarios.Scenario
}

// TestScenariosOnAPIServer creates the pod of every scenario and compares what the server made of it.
func TestScenariosOnAPIServer(t *testing.T) {
	i := need(t)
	all, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string]*group{}
	for _, s := range all {
		if why := inapplicable(s); why != "" {
			t.Logf("%s: not for an API server: %s", s.Name, why)
			continue
		}
		_, offered := namespaced(s.Policy, "")
		cluster, runtimes := clusterOf(s)
		failures := guardaccess.Decode(strings.ReplaceAll(s.Failures(s.Governed().Pools).Encode(), scenarios.Namespace, namespaceOf(s)))
		key := strings.Join(s.NodeFiles, " ") + "\n" + strings.Join(s.SliceFiles, " ") + "\n" + offered + cluster + failures.Encode()
		if groups[key] == nil {
			groups[key] = &group{source: s.Source(), pools: offered, cluster: cluster, runtimes: runtimes, failures: failures}
		}
		groups[key].cases = append(groups[key].cases, s)
	}
	const most = 200 // with those of other tests, a cluster may have 512 policies
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		for cases := range slices.Chunk(groups[key].cases, most) {
			part := *groups[key]
			part.cases = cases
			part.run(t, i)
		}
	}
	if err := i.Devices(t.Context(), pools.Source{}); err != nil { // for the tests after this one
		t.Fatal(err)
	}
	if err := i.Runtimes(t.Context(), []byte(runtimeClasses), pools.Runtimes{}); err != nil { // for the tests after this one
		t.Fatal(err)
	}
}

// inapplicable returns why a scenario cannot be run on an API server.
func inapplicable(s scenarios.Scenario) string {
	switch {
	case s.Old != nil:
		return "it begins with a live pod"
	case strings.Contains(string(s.Policy), "\nnamespaces:"):
		return "its policy names its namespaces itself"
	case broken(s.Policy):
		return "a broken policy, which the shared server would never settle on"
	case s.Policy == nil && strings.Contains(s.Want["verdict"], "no gpuslice policy governs"):
		return "the shared server has a default policy"
	case s.Tenant != nil && (s.Policy == nil || len(s.Governed().TenantNotes) > 0):
		return "a tenant's document that nothing holds beside the server's default policy, or that is denied when it is written"
	case strings.Contains(string(s.Pod), corev1.MirrorPodAnnotationKey):
		return "only a kubelet may create mirror pods"
	}
	return ""
}

func broken(document []byte) bool {
	if document == nil {
		return false
	}
	_, problems := config.Parse("a", document)
	return len(problems) > 0
}

func (g *group) run(t *testing.T, i *install.Installation) {
	t.Helper()
	ctx := t.Context()
	document := defaultPolicy(g.pools)
	if err := i.Policy(ctx, "default", document); err != nil {
		t.Fatal(err)
	}
	if err := i.Nodes(ctx, g.source.Nodes...); err != nil {
		t.Fatal(err)
	}
	if err := i.Devices(ctx, g.source); err != nil {
		t.Fatal(err)
	}
	if err := i.Runtimes(ctx, []byte(g.cluster), g.runtimes); err != nil {
		t.Fatal(err)
	}
	if err := i.Forget(ctx); err != nil { // a pool is remembered after its last node goes
		t.Fatal(err)
	}
	if err := i.GuardFailures(ctx, g.failures); err != nil {
		t.Fatal(err)
	}
	for _, s := range g.cases {
		labels := maps.Clone(s.Namespace.Labels)
		if err := i.Server.Namespace(ctx, namespaceOf(s), labels); err != nil {
			t.Fatal(err)
		}
		limitRange(t, i, s)
		if s.Policy == nil {
			continue
		}
		own, _ := namespaced(s.Policy, namespaceOf(s))
		if err := i.Policy(ctx, namespaceOf(s), []byte(own)); err != nil {
			t.Fatal(err)
		}
	}
	if err := i.Settle(ctx, poolNames(t, g.source, document)...); err != nil {
		t.Fatal(err)
	}
	g.tenants(t, i)
	for _, s := range g.cases {
		t.Run(s.Name, func(t *testing.T) { compare(t, i, s) })
	}
	for _, s := range g.cases { // there are more scenarios than a cluster may have policies
		if s.Policy == nil {
			continue
		}
		if err := i.RemovePolicy(ctx, namespaceOf(s)); err != nil {
			t.Fatal(err)
		}
	}
}

// limitRange creates the LimitRange of a case's namespace.
func limitRange(t *testing.T, i *install.Installation, s scenarios.Scenario) {
	t.Helper()
	if s.LimitRange == nil {
		return
	}
	_, err := i.Server.Client.CoreV1().LimitRanges(namespaceOf(s)).Create(t.Context(), s.LimitRange.DeepCopy(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// tenants writes the tenants' own documents, which are held against the policies when they are written.
func (g *group) tenants(t *testing.T, i *install.Installation) {
	t.Helper()
	written := false
	for _, s := range g.cases {
		if s.Tenant == nil {
			continue
		}
		if err := i.TenantPolicy(t.Context(), i.Server.Config, namespaceOf(s), s.Tenant); err != nil {
			t.Fatal(err)
		}
		written = true
	}
	if written {
		if err := i.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// clusterOf is what the cluster of a scenario has of NVIDIA's, and what that tells.
func clusterOf(s scenarios.Scenario) (string, pools.Runtimes) {
	if s.Cluster == nil {
		return runtimeClasses, pools.Runtimes{}
	}
	told := s.Runtimes
	if told.Operator != nil { // they name the namespace of the scenario, which is another one here
		operator := *told.Operator
		operator.ManagementNamespaces = slices.Clone(operator.ManagementNamespaces)
		for n, name := range operator.ManagementNamespaces {
			operator.ManagementNamespaces[n] = strings.ReplaceAll(name, scenarios.Namespace, namespaceOf(s))
		}
		told.Operator = &operator
	}
	return strings.ReplaceAll(string(s.Cluster), scenarios.Namespace, namespaceOf(s)), told
}

// namespaceOf is the namespace of a scenario on the shared server.
func namespaceOf(s scenarios.Scenario) string {
	name := "s-" + strings.ReplaceAll(s.Name, ".", "-")
	return strings.TrimRight(name[:min(len(name), 60)], "-")
}

// compare creates the scenario's pod and holds the server's answer against what the scenario wants.
func compare(t *testing.T, i *install.Installation, s scenarios.Scenario) {
	pod := &unstructured.Unstructured{}
	if err := json.Unmarshal(s.Pod, &pod.Object); err != nil {
		t.Fatal(err)
	}
	pod.SetNamespace(namespaceOf(s))
	got, warnings, err := create(t.Context(), i, pod)
	want := verdictOf(s)
	switch {
	case apierrors.IsInvalid(err) && (want.outcome == policies.Mutated || want.outcome == policies.DevicesHidden):
		t.Fatalf("what was made of the pod is not valid: %v", err)
	case otherDenial(err) != "":
		t.Skipf("the server itself denies this pod: %s", otherDenial(err))
	case want.outcome == policies.Denied:
		wantDenial(t, s, want, err)
		return
	case err != nil:
		t.Fatalf("want %s, got: %v", want.outcome, err)
	}
	for _, w := range want.warnings {
		if !slices.ContainsFunc(warnings, func(have string) bool { return strings.HasPrefix(have, w[:min(len(w), 200)]) }) {
			t.Errorf("the warning %q is not among %q", w, warnings)
		}
	}
	if _, rewritten := got.GetAnnotations()[api.AnnotationPlanned]; rewritten != (want.outcome == policies.Mutated) {
		t.Fatalf("want %s, the pod's annotations are %v", want.outcome, slices.Collect(maps.Keys(got.GetAnnotations())))
	}
	if want.outcome == policies.Mutated || want.outcome == policies.DevicesHidden {
		wantPod(t, s, got)
	}
}

func create(ctx context.Context, i *install.Installation, pod *unstructured.Unstructured) (*unstructured.Unstructured, []string, error) {
	c := &collector{}
	got, err := i.Apply.Warning(c).Create(ctx, pod, metav1.CreateOptions{})
	return got, c.texts, err
}

type collector struct{ texts []string }

func (c *collector) HandleWarningHeader(_ int, _ string, text string) {
	c.texts = append(c.texts, text)
}

// otherDenial returns the denial of somebody else in the server's chain: Pod Security, or the pod's own validation.
func otherDenial(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || strings.Contains(err.Error(), "gpuslice.dev\" denied") {
		return ""
	}
	return err.Error()
}

// verdict is a scenario's want/verdict, read.
type verdict struct {
	outcome           policies.Outcome
	denials, warnings []string
}

func verdictOf(s scenarios.Scenario) verdict {
	var v verdict
	text := strings.ReplaceAll(s.Want["verdict"], "/"+scenarios.Namespace, "/"+namespaceOf(s))
	text = strings.ReplaceAll(text, scenarios.Namespace+"/"+api.TenantPolicyName, namespaceOf(s)+"/"+api.TenantPolicyName)
	text = strings.ReplaceAll(text, fmt.Sprintf("namespace %q", scenarios.Namespace), fmt.Sprintf("namespace %q", namespaceOf(s)))
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if denial, ok := strings.CutPrefix(line, "denial: "); ok {
			v.denials = append(v.denials, denial)
		} else if warning, ok := strings.CutPrefix(line, "warning: "); ok {
			v.warnings = append(v.warnings, warning)
		} else if outcome, _, ok := strings.Cut(line, ": "); ok && v.outcome == "" {
			v.outcome = policies.Outcome(outcome)
		}
	}
	return v
}

// exponent is a quantity that the server writes in another way than its author: 1e400 as 10e399.
var exponent = regexp.MustCompile(`10?e[0-9]+`)

func wantDenial(t *testing.T, s scenarios.Scenario, want verdict, err error) {
	t.Helper()
	if err == nil {
		t.Fatalf("the pod was created; want it denied: %q", want.denials)
	}
	for _, text := range want.denials {
		if !strings.Contains(exponent.ReplaceAllString(err.Error(), "N"), exponent.ReplaceAllString(text[:min(len(text), 400)], "N")) {
			t.Errorf("want the denial %q, got: %v", text, err)
		}
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		t.Fatalf("%v is no status", err)
	}
	if err := s.CheckCauses(status.ErrStatus.Details); err != nil {
		t.Error(err)
	}
}

// wantPod holds the server's pod against the pod that want/pod.diff makes: all that stands there, and in the lists that gpuslice writes
// nothing else but what the server adds to every pod.
func wantPod(t *testing.T, s scenarios.Scenario, got *unstructured.Unstructured) {
	t.Helper()
	text, err := scenarios.PodYAML(got.Object)
	if err != nil {
		t.Fatal(err)
	}
	mutated, err := s.MutatedPod()
	if err != nil {
		t.Fatal(err)
	}
	have, want := typed(t, []byte(text)), typed(t, []byte(mutated))
	if diff := cmp.Diff(essence(want), essence(have)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", s.Comment, diff)
	}
}

func typed(t *testing.T, text []byte) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	if err := yaml.Unmarshal(text, &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

// essence is what gpuslice may write in a pod.
func essence(pod *corev1.Pod) map[string]any {
	out := map[string]any{
		"affinity":              pod.Spec.Affinity,
		"shareProcessNamespace": pod.Spec.ShareProcessNamespace,
		"priorityClassName":     pod.Spec.PriorityClassName,
		"runtimeClassName":      pod.Spec.RuntimeClassName,
		"imagePullSecrets":      pod.Spec.ImagePullSecrets,
	}
	if name := pod.Spec.SchedulerName; name != "" && name != corev1.DefaultSchedulerName {
		out["schedulerName"] = name
	}
	var volumes []string
	for _, v := range pod.Spec.Volumes {
		if !strings.HasPrefix(v.Name, "kube-api-access-") {
			volumes = append(volumes, v.Name)
		}
	}
	out["volumes"] = volumes
	for kind, list := range map[string][]corev1.Container{"init": pod.Spec.InitContainers, "app": pod.Spec.Containers} {
		for n, c := range list {
			out[fmt.Sprintf("%s %d %s", kind, n, c.Name)] = containerEssence(c)
		}
	}
	return out
}

func containerEssence(c corev1.Container) map[string]any {
	resources := map[string]string{}
	for kind, list := range map[string]corev1.ResourceList{"limits": c.Resources.Limits, "requests": c.Resources.Requests} {
		for name, q := range list {
			if kind == "limits" || strings.HasPrefix(string(name), "nvidia.com/") { // the server copies limits to requests
				resources[kind+" "+string(name)] = q.String()
			}
		}
	}
	var mounts []string
	for _, m := range c.VolumeMounts {
		if !strings.HasPrefix(m.Name, "kube-api-access-") {
			mounts = append(mounts, m.Name+" on "+m.MountPath)
		}
	}
	var env []string
	for _, e := range c.Env {
		env = append(env, e.Name+"="+e.Value)
	}
	return map[string]any{"resources": resources, "mounts": mounts, "env": env}
}
