package chart

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/test/install"
)

const everything = "--values=testdata/everything.yaml"

// manifests are what kubectl applies, but the namespace, which Helm makes itself.
func manifests(t *testing.T) (objects []*unstructured.Unstructured) {
	t.Helper()
	names, err := fs.Glob(deploy.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := deploy.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		more, err := install.Objects(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		objects = append(objects, more...)
	}
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Namespace" })
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	t.Run("are the manifests", func(t *testing.T) {
		t.Parallel()
		h := newHelm(t, "")
		if diff := cmp.Diff(byName(t, manifests(t)), byName(t, withoutHelmLabels(t, h.render(version("VERSION"), "--skip-tests")))); diff != "" {
			t.Errorf("a value's default in values.yaml is not what its manifest says (-manifest +chart)\n%s", diff)
		}
	})
}

func TestRender(t *testing.T) {
	t.Parallel()
	t.Run("is clean and the same each time", func(t *testing.T) {
		t.Parallel()
		h := newHelm(t, "")
		for _, values := range []string{version("v1"), everything} {
			if out := h.run("lint", chartFolder, "--strict", values); strings.Contains(out, "WARNING") {
				t.Error(out)
			}
			first := h.run("template", release, chartFolder, values)
			for range 3 {
				if second := h.run("template", release, chartFolder, values); second != first {
					t.Fatalf("%s: rendered twice, and differs (-first +second)\n%s", values, cmp.Diff(first, second))
				}
			}
			if strings.Contains(strings.ReplaceAll(first, "helm.sh/hook: test", ""), "helm.sh/hook:") {
				t.Errorf("%s: there is a hook that is no test: GitOps tools do not run it, or run it at each sync", values)
			}
		}
	})
}

// TestExtraObjects renders a manifest, and a text with templates.
func TestExtraObjects(t *testing.T) {
	t.Parallel()
	objects := byName(t, newHelm(t, "").render(version("v1"),
		`--set-json=extraObjects=[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"beside"}},"{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ .Release.Name }}-beside}}"]`))
	for _, name := range []string{"ConfigMap beside", "ConfigMap " + release + "-beside"} {
		if objects[name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
}

// TestHostNetwork: two replicas cannot have one port of a node.
func TestHostNetwork(t *testing.T) {
	t.Parallel()
	h := newHelm(t, "")
	for _, o := range h.render(version("v1"),
		"--set=hostNetwork=true,labels=null,readinessProbe=null,livenessProbe=null,terminationGracePeriodSeconds=null") {
		if o.GetKind() != "Deployment" {
			continue
		}
		d := convert(t, o)
		if r := d.Spec.Strategy.RollingUpdate; r.MaxSurge.IntValue() != 0 || r.MaxUnavailable.IntValue() != 1 {
			t.Errorf("an upgrade needs a free node: %v", r)
		}
		if s := d.Spec.Template.Spec.TerminationGracePeriodSeconds; *s != 60 {
			t.Errorf("a replica has %d s to end", *s)
		}
	}
	notes := h.run("install", release, chartFolder, version("v1"), "--dry-run=client", "--set=hostNetwork=true")
	if !strings.Contains(notes, "enforce=privileged") {
		t.Errorf("the notes name no level under which replicas start:\n%s", notes[strings.Index(notes, "NOTES"):])
	}
}

// TestMonitorLabels: a monitor's own labels take precedence over the chart's.
func TestMonitorLabels(t *testing.T) {
	t.Parallel()
	objects := byName(t,
		newHelm(t, "").render(version("v1"), `--set-json=metrics.podMonitor={"enabled":true,"labels":{"app.kubernetes.io/instance":"prom"}}`))
	monitor := unstructured.Unstructured{Object: objects["PodMonitor gpuslice-webhook"].(map[string]any)}
	if got := monitor.GetLabels()["app.kubernetes.io/instance"]; got != "prom" {
		t.Errorf("the label is %q", got)
	}
}

// TestTemplates is why they render the same each time, with and without a cluster.
func TestTemplates(t *testing.T) {
	t.Parallel()
	t.Run("query nothing but the agents' runtime class, and generate nothing", func(t *testing.T) {
		t.Parallel()
		files, err := filepath.Glob(filepath.Join(chartFolder, "templates", "*"))
		if err != nil || len(files) < 5 {
			t.Fatalf("%q, %v", files, err)
		}
		action := regexp.MustCompile(`\{\{.*?\}\}`)
		banned := regexp.MustCompile(
			`\b(lookup|now|date|gen[A-Z]\w+|rand\w+|uuidv4|derivePassword|htpasswd|getHostByName|Release\.(IsInstall|IsUpgrade|Revision))\b`)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range action.FindAllString(string(text), -1) {
				if word := banned.FindString(a); word != "" && !strings.Contains(a, `lookup "node.k8s.io/v1" "RuntimeClass" "" "nvidia"`) {
					t.Errorf("%s: %s depends on more than the values: %s", file, word, a)
				}
			}
		}
	})
}

// TestValues renders with no default left, into another namespace.
func TestValues(t *testing.T) {
	t.Parallel()
	t.Run("each arrives", func(t *testing.T) {
		t.Parallel()
		h := newHelm(t, "")
		objects := h.render(everything, "--namespace=elsewhere")
		decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
		var deployment *appsv1.Deployment
		for _, o := range objects {
			text, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), api.SystemNamespace) {
				t.Errorf("%s %s names %s, and was rendered for another namespace", o.GetKind(), o.GetName(), api.SystemNamespace)
			}
			if o.GetLabels()["team"] != "platform" && !strings.HasSuffix(o.GetName(), "beside") {
				t.Errorf("%s %s lacks the labels of the values: it needs some of its own", o.GetKind(), o.GetName())
			}
			if o.GroupVersionKind().Group == "monitoring.coreos.com" {
				continue // the Prometheus operator's types are not ours to decode
			}
			decoded, _, err := decoder.Decode(text, nil, nil)
			if err != nil {
				t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
				continue
			}
			if d, ok := decoded.(*appsv1.Deployment); ok {
				deployment = d
			}
			selectors(t, decoded)
		}
		pod := deployment.Spec.Template
		c := pod.Spec.Containers[0]
		env := map[string]string{}
		for _, e := range c.Env {
			env[e.Name] = e.Value
		}
		got := []any{*deployment.Spec.Replicas, c.Image, c.ImagePullPolicy,
			c.Resources.Limits.Memory().String(), env, c.Args[2:], pod.Spec.PriorityClassName,
			pod.Spec.NodeSelector, pod.Spec.Tolerations[0].Key, pod.Spec.TopologySpreadConstraints[0].TopologyKey, pod.Spec.ImagePullSecrets[0].Name,
			pod.Spec.Volumes[0].Secret.SecretName, c.VolumeMounts[0].MountPath, pod.Labels["mesh"], pod.Annotations, deployment.Annotations,
			pod.Spec.HostNetwork, pod.Spec.DNSPolicy, c.Args[:2], c.Ports[0].ContainerPort,
			c.Ports[1].ContainerPort, c.ReadinessProbe.FailureThreshold,
			c.ReadinessProbe.HTTPGet.Path, c.LivenessProbe.TimeoutSeconds,
			*pod.Spec.TerminationGracePeriodSeconds, *deployment.Spec.RevisionHistoryLimit,
			pod.Spec.Volumes[1].Name, c.VolumeMounts[1].MountPath}
		want := []any{int32(5), "mirror.test/gpuslice/webhook:v9.9.9", corev1.PullAlways, "1Gi", map[string]string{
			"GOMEMLIMIT":                   "400MiB",
			"GPUSLICE_GUARD_IMAGE":         "mirror.test/gpuslice/guard@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
			"GPUSLICE_GUARD_IMAGE_MIRRORS": "mirror.test/gpuslice/guard",
			"GPUSLICE_GUARD_CPU":           "30m",
			"GPUSLICE_GUARD_MEMORY":        "96Mi",
			"GPUSLICE_GUARD_PULL_POLICY":   "Never",
			"GPUSLICE_GUARD_PULL_SECRET":   "guard-pull",
			"GPUSLICE_LOG_LEVEL":           "debug",
			"GPUSLICE_LOG_FORMAT":          "text",
			"GPUSLICE_USAGE_LABEL":         "example.com/team",
			"GPUSLICE_USAGE_DAYS":          "30",
			"HTTPS_PROXY":                  "http://proxy.test:3128",
		}, []string{"--namespace=elsewhere", "--certs=files", "--certs-file=/certificate/tls.crt",
			"--certs-key-file=/certificate/tls.key", "--observe=false"},
			"infrastructure", map[string]string{"pool": "infrastructure"}, "infrastructure", "rack", "pull", "my-certificate", "/certificate", "off",
			map[string]string{"sidecar.istio.io/inject": "false"}, map[string]string{"reloader": "true"},
			true, corev1.DNSDefault, []string{"--listen=:10443", "--metrics-listen=:18080"}, int32(10443), int32(18080), int32(2),
			"/readyz", int32(10), int64(120), int32(3), "scratch", "/scratch"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

// selectors holds the entries of a webhook configuration against the values.
func selectors(t *testing.T, object runtime.Object) {
	t.Helper()
	check := func(name string, selector *metav1.LabelSelector, bundle []byte) {
		out := []string{"kube-system", "kube-public", "kube-node-lease"}
		if name != "policies.gpuslice.dev" { // which are looked at in gpuslice's own namespace too
			out = append(out, "elsewhere", "gpu-operator", "monitoring")
		}
		want := []metav1.LabelSelectorRequirement{
			{Key: corev1.LabelMetadataName, Operator: "NotIn", Values: out}, {Key: "control-plane", Operator: "NotIn", Values: []string{"true"}},
		}
		for _, w := range want {
			if !slices.ContainsFunc(selector.MatchExpressions, func(have metav1.LabelSelectorRequirement) bool { return cmp.Equal(w, have) }) {
				t.Errorf("%s: the selector lacks %v: write its namespaces as the other entries do", name, w)
			}
		}
		if !strings.HasPrefix(string(bundle), "-----BEGIN CERTIFICATE-----") {
			t.Errorf("%s: the authority is %q", name, bundle)
		}
	}
	switch c := object.(type) {
	case *admissionv1.MutatingWebhookConfiguration:
		for _, w := range c.Webhooks {
			check(w.Name, w.NamespaceSelector, w.ClientConfig.CABundle)
		}
	case *admissionv1.ValidatingWebhookConfiguration:
		for _, w := range c.Webhooks {
			check(w.Name, w.NamespaceSelector, w.ClientConfig.CABundle)
		}
	}
}

// TestCertManager renders that source: what deploy/certmanager holds, the Secret it writes mounted,
// and no bundle but cert-manager's.
func TestCertManager(t *testing.T) {
	t.Parallel()
	t.Run("gets what its own types define", func(t *testing.T) {
		t.Parallel()
		rendered := byName(t, withoutHelmLabels(t, newHelm(t, "").render(version("v1"), "--set=certificates.source=cert-manager")))
		text, err := deploy.Files.ReadFile("certmanager/certificate.yaml")
		if err != nil {
			t.Fatal(err)
		}
		asked, err := install.Objects(text)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range byName(t, asked) {
			if diff := cmp.Diff(want, rendered[name]); diff != "" {
				t.Errorf("%s (-deploy/certmanager +chart)\n%s", name, diff)
			}
		}
		for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
			c := &unstructured.Unstructured{Object: rendered[kind+" "+configuration].(map[string]any)}
			if got, want := c.GetAnnotations()["cert-manager.io/inject-ca-from-secret"], api.SystemNamespace+"/gpuslice-authority"; got != want {
				t.Errorf("%s: injected from %q", kind, got)
			}
		}
		pod := convert(t, &unstructured.Unstructured{Object: rendered["Deployment "+deployment].(map[string]any)}).Spec.Template.Spec
		if diff := cmp.Diff([]string{"--certs=cert-manager", "--certs-file=/certificate/tls.crt", "--certs-key-file=/certificate/tls.key",
			"--certs-ca-file=/certificate/ca.crt"}, pod.Containers[0].Args[3:]); diff != "" {
			t.Errorf("args (-want +got)\n%s", diff)
		}
		if got := pod.Volumes[0].Secret.SecretName; got != "gpuslice-webhook-tls" {
			t.Errorf("Secret %s is mounted", got)
		}
	})
}

func TestPolicyValues(t *testing.T) {
	t.Parallel()
	t.Run("are read by the webhook's code", func(t *testing.T) {
		t.Parallel()
		h := newHelm(t, "")
		read := map[string]string{}
		for _, o := range h.render(everything, "--set=samplePolicies=true") {
			if o.GetLabels()[api.LabelPolicy] != "true" {
				continue
			}
			text, _, err := unstructured.NestedString(o.Object, "data", api.PolicyKey)
			if err != nil {
				t.Fatal(err)
			}
			_, problems := config.Parse(o.GetName(), []byte(text))
			if len(problems) > 0 {
				t.Errorf("%s: %v", o.GetName(), problems.ToAggregate())
			}
			read[o.GetName()] = text
		}
		for _, name := range []string{"cluster", "team-a", "default", "team-inference", "team-notebooks"} {
			if read[name] == "" {
				t.Errorf("policy %s is missing", name)
			}
		}
		if !strings.Contains(read["team-a"], "{{memoryMiB}}") {
			t.Errorf("a policy's own placeholder was taken for the chart's: %s", read["team-a"])
		}
	})
}

func TestWrongValues(t *testing.T) {
	t.Parallel()
	t.Run("are denied with a sentence", func(t *testing.T) {
		t.Parallel()
		h := newHelm(t, "")
		for _, tt := range []struct{ name, set, want string }{
			{"no image", "--set=image.tag=", "image.tag is not set, and this chart carries no version"},
			{"a misspelt key", "--set=replica=3", "additional properties 'replica' not allowed"},
			{"a misspelt key further down", "--set=guard.memry=64Mi", "at '/guard': additional properties 'memry' not allowed"},
			{"no replica", "--set=replicas=0", "at '/replicas': minimum"},
			{"replicas as a word", "--set-string=replicas=three", "at '/replicas': got string, want integer"},
			{"a quantity without a unit that exists", "--set=guard.memory=64MB", "at '/guard/memory'"},
			{"a failure policy that is none", "--set=failurePolicy.mutating=Open",
				"at '/failurePolicy/mutating': value must be one of 'Ignore', 'Fail'"},
			{"a source of certificates that is none", "--set=certificates.source=vault", "at '/certificates/source': value must be one of"},
			{"files without a Secret", "--set=certificates.source=files", "at '/certificates/files/secretName': minLength"},
			{"a range that is none", "--set=networkPolicy.reviewCIDRs={10.0.0.1}", "at '/networkPolicy/reviewCIDRs/0'"},
			{"a policy without a version", "--set=policies.team-a.mode=opt-in", "at '/policies/team-a': missing property 'apiVersion'"},
			{"a policy with a mode that is none", "--set=policies.default.apiVersion=gpuslice.dev/v1,policies.default.mode=transparant",
				"at '/policies/default/mode': value must be one of"},
			{"a policy with an unknown field", "--set=policies.default.apiVersion=gpuslice.dev/v1,policies.default.strategy=mig",
				"additional properties 'strategy' not allowed"},
			{"a policy and a sample of one name", "--set=samplePolicies=true,policies.default.apiVersion=gpuslice.dev/v1",
				"policies.default and samplePolicies=true both write ConfigMap default"},
			{"a policy and another sample of one name",
				"--set=samplePolicies=true,policies.team-notebooks.apiVersion=gpuslice.dev/v1", "both write ConfigMap team-notebooks"},
			{"a policy under a name of gpuslice's own", "--set=policies.gpuslice-state.apiVersion=gpuslice.dev/v1", "gpuslice-state"},
			{"two ports that are one", "--set=hostNetwork=true,ports.metrics=9443", "ports.https and ports.metrics are the same"},
			{"a memory limit below GOMEMLIMIT", "--set=resources.limits.memory=256Mi", "set goMemLimit to 192MiB, three quarters of the limit"},
			{"a GOMEMLIMIT above the memory limit", "--set=goMemLimit=1GiB", "goMemLimit is 1GiB, and resources.limits.memory 512Mi"},
			{"the kubelet's port", "--set=hostNetwork=true,ports.https=10250", "the kubelet of each node has port 10250"},
			{"a label that selectors have", `--set-json=labels={"app.kubernetes.io/name":"x"}`, "invalid propertyName 'app.kubernetes.io/name'"},
			{"a label that is too long", "--set=podLabels.team=" + strings.Repeat("x", 70), "at '/podLabels/team': maxLength"},
			{"a liveness probe that needs two successes", "--set=livenessProbe.successThreshold=2", "at '/livenessProbe'"},
			{"a volume with the certificate's name", "--set=extraVolumes[0].name=certificate", "at '/extraVolumes/0/name'"},
			{"a variable that is a number", "--set=extraEnv[0].name=A,extraEnv[0].value=3", "at '/extraEnv/0/value': got number, want string"},
			{"replicas by another chart's name", "--set=replicaCount=2", "replicaCount is no value of this chart: write replicas"},
			{"a level by another chart's name", "--set=logLevel=debug", "logLevel is no value of this chart: write log.level"},
			{"secrets by another chart's name", "--set=imagePullSecrets[0].name=pull", "write image.pullSecrets, a list of names"},
			{"a name that is fixed", "--set=fullnameOverride=slices", "fullnameOverride is no value of this chart: the objects have fixed names"},
			{"another chart's name for none", "--set=installCRDs=true", "gpuslice has no CRD"},
			{"a ServiceAccount of another name", "--set=serviceAccount.name=slices", "serviceAccount.name is no value of this chart"},
			{"a ServiceAccount that is false", "--set=serviceAccount.create=false", "serviceAccount.create is no value of this chart"},
			{"replicas that must stay", "--set=podDisruptionBudget.minAvailable=2", "write podDisruptionBudget.maxUnavailable"},
			{"a digest that is none", "--set=image.digest=latest", "at '/image/digest'"},
		} {
			out, err := h.try("template", release, chartFolder, version("v1"), tt.set)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: want %q, got %v\n%s", tt.name, tt.want, err, out)
			}
		}
	})
}
