package doctor

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

// operator is a ClusterPolicy with a spec, in YAML.
func operator(spec string) change {
	return written("{apiVersion: nvidia.com/v1, kind: ClusterPolicy, metadata: {name: cluster-policy}, spec: " +
		spec + ", status: {state: ready, namespace: nvidia}}")
}

// written adds an object as it stands in a file.
func written(text string) change {
	return func(t *testing.T, f *Facts) {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(raw, &head); err != nil {
			t.Fatal(err)
		}
		for _, k := range dumpedKinds(f) {
			if k.apiVersion == head.APIVersion && k.kind == head.Kind {
				if err := k.add(raw); err != nil {
					t.Fatal(err)
				}
				return
			}
		}
		t.Fatalf("%s %s is not read", head.APIVersion, head.Kind)
	}
}

// agents are the DaemonSet of agents.
func agents(wanted, ready int32) change {
	return func(_ *testing.T, f *Facts) {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: f.System, Name: "gpuslice-agent"}}
		d.Status.DesiredNumberScheduled, d.Status.NumberReady = wanted, ready
		f.DaemonSets = append(f.DaemonSets, d)
	}
}

// agented has each node offer its agent.
func agented(_ *testing.T, f *Facts) {
	for _, node := range f.Nodes {
		node.Status.Capacity[limits.GuardedResource] = resource.MustParse("1024")
	}
}

// toolkitAt is a container toolkit of a version.
func toolkitAt(version string) change {
	return func(_ *testing.T, f *Facts) {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "nvidia", Name: "toolkit"}}
		d.Spec.Template.Spec.Containers = []corev1.Container{
			{Name: "nvidia-container-toolkit-ctr", Image: "nvcr.io/nvidia/k8s/container-toolkit:" + version},
		}
		f.DaemonSets = append(f.DaemonSets, d)
	}
}

// sharedIn is a node whose device is shared in so many replicas.
func sharedIn(node, strategy string, replicas int64) []change {
	return []change{
		nodes(node), label("nvidia.com/gpu.replicas", fmt.Sprint(replicas)), label("nvidia.com/gpu.sharing-strategy", strategy),
		func(_ *testing.T, f *Facts) {
			for _, node := range f.Nodes {
				node.Status.Allocatable = corev1.ResourceList{"nvidia.com/gpu.shared": *resource.NewQuantity(replicas, resource.DecimalSI)}
				node.Status.Capacity = node.Status.Allocatable
			}
		},
	}
}

// guardImage has the installed webhook inject a guard with a pull secret.
func guardImage(pullSecret string) change {
	return func(_ *testing.T, f *Facts) {
		f.Deployment.Spec.Template.Spec.Containers = []corev1.Container{
			{Args: []string{"--guard-image=guard", "--guard-pull-secret=" + pullSecret}},
		}
	}
}

// labeled is a namespace with a label.
func labeled(key, value string) change {
	return func(_ *testing.T, f *Facts) {
		f.Namespaces = append(f.Namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{key: value}}})
	}
}

func apiServerPod(plugins string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {name: kube-apiserver-n1, namespace: kube-system}, " +
		"spec: {containers: [{name: a, command: [kube-apiserver, '--enable-admission-plugins=" + plugins + "']}]}}"
}

func limitRange(item string) string { return limitRangeOf("Container", item) }

func limitRangeOf(kind, item string) string {
	return "{apiVersion: v1, kind: LimitRange, metadata: {name: limits, namespace: a}, spec: {limits: [{type: " + kind + ", " + item + "}]}}"
}

func mpsOf(replicas int) string {
	return fmt.Sprintf("version: v1\nsharing:\n  mps:\n    resources: [{name: nvidia.com/gpu, replicas: %d}]\n", replicas)
}

// mpsDaemonSet is one as a guide prints it, with a directory of the host mounted; "": with none.
func mpsDaemonSet(directory string) string {
	volume := "hostPath: {path: " + directory + "}"
	if directory == "" {
		directory, volume = "/tmp", "emptyDir: {}"
	}
	return "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: mps, namespace: mps}, spec: {template: {spec: {containers: [{name: mps, image: nvidia/cuda, " +
		"command: [sh, -c, nvidia-cuda-mps-control -f], volumeMounts: [{name: v, mountPath: " +
		directory + "}]}], volumes: [{name: v, " + volume + "}]}}}}"
}

// partsOn is a pod of 8Gi on the node l4-parts-1, which was given 8 parts of a device with so many; 0: it was given none.
func partsOn(replicas int, granule api.MiB) change {
	return func(_ *testing.T, f *Facts) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "train"},
			Spec: corev1.PodSpec{NodeName: "l4-parts-1", Containers: []corev1.Container{{Name: "trainer"}}}}
		given := promise.Promise{
			Version: promise.Version, Request: api.Request{Explicit: true, Containers: []api.ContainerRequest{{Name: "trainer", GPUs: 1}}},
			Containers: []promise.Container{{Name: "trainer", Resource: string(sharedGPU), Count: 8, Granule: granule, Replicas: replicas}},
		}
		if replicas > 0 {
			p.Annotations = map[string]string{api.AnnotationPromise: given.Encode()}
		}
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{sharedGPU: resource.MustParse("8")}
		f.addPod(p)
	}
}

// configAs is a configuration under a name.
func configAs(name, text string) change {
	return func(_ *testing.T, f *Facts) {
		f.Configs = append(f.Configs, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "nvidia", Name: "configs"}, Data: map[string]string{name: text}})
	}
}

// noPods is a cluster whose pods are known, and hold no GPU.
func noPods(_ *testing.T, f *Facts) { f.Held = map[held]bool{} }

// packed is a configuration by which a device plugin of 0.20 packs replicas.
const packed = "version: v1\nflags:\n  plugin:\n    sharedDevicesAllocationPolicy: packed\n"

// unreadPods is an API server that fails before the last page of pods.
func unreadPods(_ *testing.T, f *Facts) {
	f.Unread = append(f.Unread, Unread{whatPods, errors.New("expired")})
}

// holds is a pod that holds a resource on a node, or waits for it.
func holds(node, name string) change {
	return func(_ *testing.T, f *Facts) { f.Held[held{node, corev1.ResourceName(name)}] = true }
}

// pluginOf is a device plugin of a version.
func pluginOf(version string, args ...string) change {
	return func(_ *testing.T, f *Facts) {
		d := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "nvidia", Name: "plugin"}}
		d.Spec.Template.Spec.Containers = []corev1.Container{
			{Name: "nvidia-device-plugin-ctr", Image: "nvcr.io/nvidia/k8s-device-plugin:" + version, Args: args},
		}
		f.DaemonSets = append(f.DaemonSets, d)
	}
}

// configuredRows are about what NVIDIA's software and Kubernetes are configured with: the mistakes are those of public
// guides, and of those who follow them.
func configuredRows() []row {
	envFalse := corev1.EnvVar{Name: envvarSetting, Value: "false"}
	mounts := corev1.EnvVar{Name: mountsSetting, Value: "true"}
	shared := "version: v1\nsharing:\n  timeSlicing:\n    renameByDefault: true\n    failRequestsGreaterThanOne: true\n    resources: [{name: nvidia.com/gpu, replicas: 4}]\n"
	several := strings.ReplaceAll(shared, "failRequestsGreaterThanOne: true\n    resources: [{name: nvidia.com/gpu, replicas: 4}]",
		"failRequestsGreaterThanOne: false\n    resources: [{name: nvidia.com/gpu, replicas: 21}]")
	granularL4 := defaultPolicy("pools: {declared: [{name: l4-parts, selector: {example.com/gpus: parts}, resource: nvidia.com/gpu.shared, strategy: time-slicing, " +
		"deviceMemory: 23034Mi, replicas: 21, granular: true, driver: 580.95.05}]}\n")
	slip := func(name, as string) string { return strings.ReplaceAll(shared, name, as) }
	one := strings.ReplaceAll(shared, "replicas: 4", "replicas: 1")
	layouts := "version: v1\nmig-configs:\n  all-1g.10gb: [{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}]\n" +
		"  balanced: [{devices: all, mig-enabled: true, mig-devices: {1g.10gb: 2, 3g.40gb: 1}}]\n"
	limitedPod := written("{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: b}, spec: {containers: [{name: c, env: [{name: NVIDIA_GPU_MEMORY_LIMIT, value: '4096'}]}]}}")
	runtimeClass := written("{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: nvidia}, handler: nvidia}")
	l4, mig, single := nodes("l4-timeslicing-renamed"), nodes("a100-mig-mixed"), operator("{mig: {strategy: single}}")
	team := func(document string) change { return namespace("a", "", document) }
	withGuard := func(pullSecret, plugins string) []change {
		return []change{installedWith(3, nil), guardImage(pullSecret), written(apiServerPod(plugins))}
	}
	halves := "version: v1\nmig-configs:\n  four-halves: [{devices: all, mig-enabled: true, mig-devices: {3g.40gb: 2, 2g.20gb: 1}}]\n" +
		"  filtered: [{device-filter: '0x20B710DE', devices: all, mig-enabled: true, mig-devices: {1g.6gb: 4}}]\n" +
		"  small: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]\n" +
		"  compute: [{devices: all, mig-enabled: true, mig-devices: {1c.3g.40gb: 3}}]\n"
	filters := "version: v1\nmig-configs:\n" +
		"  filters: [{device-filter: ['0x20B210DE', '0x20b510de'], devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]\n" +
		"  fits: [{device-filter: '0x20B710DE', devices: all, mig-enabled: true, mig-devices: {1g.6gb: 4}}, " +
		"{device-filter: ['0x20B210DE'], devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}]\n" +
		"  others: [{device-filter: ['0x20B010DE', '0x233010DE'], devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}]\n" +
		"  unknown: [{device-filter: ['0x123410DE'], devices: all, mig-enabled: true, mig-devices: {1g.10gb: 7}}]\n"
	carried := func(config string) string {
		return "config:\n  map:\n    any: |-\n      " + strings.ReplaceAll(config, "\n", "\n      ") + "\n"
	}
	values := "config:\n  map:\n    shared: |-\n      " + strings.ReplaceAll(shared, "\n", "\n      ") +
		"\n    whole: |-\n      " + strings.ReplaceAll(one, "\n", "\n      ") + "\n"
	sharesInstances := func(strategy string) string {
		return strings.ReplaceAll(shared, "name: nvidia.com/gpu", "name: nvidia.com/mig-1g.10gb") + strategy
	}
	v100 := func(replicas int64) []change {
		return append(sharedIn("h100-mps-plugin", "mps", replicas), label("nvidia.com/gpu.product", "Tesla-V100-SXM2-32GB"),
			label("nvidia.com/gpu.compute.major", "7"), label("nvidia.com/gpu.compute.minor", "0"))
	}
	return []row{
		{"a layout that does not fit the GPUs", []change{mig, label(labelMIGConfig, "four-halves"), withConfig(halves)},
			"mig-config", Problem, "does not fit the GPUs"},
		{"a layout of another card's profiles", []change{mig, label(labelMIGConfig, "small"), withConfig(halves)},
			"mig-config", Problem, "does not fit the GPUs"},
		{"a layout of other models", []change{mig, label(labelMIGConfig, "filtered"), withConfig(halves)}, "mig-config", "", "does not fit the GPUs"},
		{"a layout that fits", []change{mig, label(labelMIGConfig, "balanced"), withConfig(layouts)}, "mig-config", "", "does not fit the GPUs"},
		{"a layout that fits, on a node under strategy single", []change{nodes("a100-mig-single"), label(labelMIGConfig, "balanced"), withConfig(layouts)},
			"mig-config", "", "does not fit the GPUs"},
		{"a layout that does not fit, on a node under strategy single",
			[]change{nodes("a100-mig-single"), label(labelMIGConfig, "small"), withConfig(halves)}, "mig-config", Problem, "does not fit the GPUs"},
		{"a layout that fits no GPU", []change{withConfig(halves)}, "mig-config", Warning, "fits no GPU"},
		{"a layout that fits not the GPU of its device filter", []change{withConfig(strings.ReplaceAll(filters, "1g.6gb: 4", "1g.6gb: 5"))},
			"mig-config", Warning, "fits no GPU, or does not fit a GPU that its device-filter names"},
		{"layouts without nodes", []change{withConfig(layouts), unreadable(whatNodes)}, "mig-config", Note, "was not checked, because the files contain no nodes"},
		{"layouts of device filters without nodes", []change{withConfig("version: v1\nmig-configs:\n  a: [{device-filter: '0x20B710DE', devices: all, " +
			"mig-enabled: true, mig-devices: {1g.6gb: 4}}]\n"), unreadable(whatNodes)}, "mig-config", "", "was not checked"},
		{"layouts that fit a GPU", []change{withConfig(layouts)}, "mig-config", "", "fits no GPU"},
		{"a layout with compute instances", []change{withConfig(halves)}, "mig-config", Warning, "into compute instances"},
		{"a layout by device filters that does not fit", []change{mig, label(labelMIGConfig, "filters"), withConfig(filters)},
			"mig-config", Problem, "does not fit the GPUs"},
		{"a layout by device filters that fits", []change{mig, label(labelMIGConfig, "fits"), withConfig(filters)}, "mig-config", "", "does not fit the GPUs"},
		{"a layout by device filters of other GPUs", []change{mig, label(labelMIGConfig, "others"), withConfig(filters)},
			"mig-config", Warning, "has no entry for the GPUs"},
		{"a layout by device filters that are not known", []change{mig, label(labelMIGConfig, "unknown"), withConfig(filters)},
			"mig-config", "", "has no entry for the GPUs"},
		{"MPS on nodes that will have MIG by a device filter", []change{nodes("a100-plain"), label(labelMIGConfig, "fits"),
			withConfig(filters), withConfig(mpsOf(4))}, "plugin-config", Problem, "MPS is configured for nodes with MIG"},
		{"a MIG strategy in the values", []change{withConfig("migStrategy: single\n" + carried(sharesInstances("")))},
			"sharing", Problem, "under MIG strategy single"},
		{"a MIG strategy in the operator's values", []change{withConfig("mig: {strategy: single}\ndevicePlugin:\n  " +
			strings.ReplaceAll(carried(sharesInstances("")), "\n", "\n  "))}, "sharing", Problem, "under MIG strategy single"},
		{"two MIG strategies in the values", []change{withConfig("migStrategy: single\n" + carried(shared+"flags: {migStrategy: mixed}\n"))},
			"plugin-config", Warning, "two MIG strategies"},
		{"one MIG strategy in the values", []change{withConfig("migStrategy: mixed\n" + carried(shared+"flags: {migStrategy: mixed}\n"))},
			"plugin-config", "", "two MIG strategies"},
		{"a configuration as fields of the values", []change{withConfig("config:\n  map:\n    any:\n      " + strings.ReplaceAll(shared, "\n", "\n      "))},
			"plugin-config", Problem, "as fields"},
		{"more replicas than any GPU has room for", []change{withConfig(strings.ReplaceAll(shared, "replicas: 4", "replicas: 16384"))},
			"sharing", Warning, "gives 16384 replicas"},
		{"values of a chart", []change{withConfig(values)}, "plugin-config", Problem, "does not start"},
		{"values of a chart are no configuration", []change{withConfig(values)}, "plugin-config", "", "ignores fields"},
		{"a configuration in the values of a chart", []change{withConfig(values)}, "sharing", OK, "gives 4 replicas"},
		{"a node that selects a configuration of the values", []change{l4, label(labelPluginConfig, "shared"), withConfig(values)},
			"plugin-selection", "", ""},
		{"a node that selects none of the values", []change{l4, label(labelPluginConfig, "other"), withConfig(values)},
			"plugin-selection", Problem, "does not exist"},
		{"a configuration in the place of the default's name",
			[]change{withConfig("config:\n  default: |-\n    version: v1\n    flags: {migStrategy: none}\n")},
			"plugin-config", Problem, "wants the name of one"},
		{"time-slicing of instances under strategy single", []change{withConfig(sharesInstances("flags: {migStrategy: single}\n"))},
			"sharing", Problem, "under MIG strategy single the device plugin offers no nvidia.com/mig-1g.10gb"},
		{"time-slicing of instances under the operator's strategy single", []change{withConfig(sharesInstances("")), single},
			"sharing", Problem, "under MIG strategy single"},
		{"time-slicing of instances under strategy none", []change{withConfig(sharesInstances("flags: {migStrategy: none}\n"))},
			"sharing", Problem, "under MIG strategy none"},
		{"time-slicing of instances under strategy mixed", []change{withConfig(sharesInstances("flags: {migStrategy: mixed}\n"))},
			"sharing", OK, "4 replicas of nvidia.com/mig-1g.10gb"},
		{"time-slicing of GPUs under strategy single", []change{withConfig(shared + "flags: {migStrategy: single}\n")},
			"sharing", OK, "4 replicas of nvidia.com/gpu"},
		{"time-slicing of GPUs that are all instances", []change{mig, withConfig(shared + "flags: {migStrategy: mixed}\n")},
			"sharing", Warning, "all GPUs are under MIG strategy mixed"},
		{"time-slicing of GPUs of which some are instances", []change{mig, l4, withConfig(shared + "flags: {migStrategy: mixed}\n")},
			"sharing", OK, "4 replicas of nvidia.com/gpu"},
		{"MPS on nodes with MIG", []change{mig, withConfig(mpsOf(4))}, "plugin-config", Problem, "MPS is configured for nodes with MIG"},
		{"MPS on nodes with MIG under strategy single", []change{nodes("a100-mig-single"), withConfig(mpsOf(4))},
			"plugin-config", Problem, "MPS is configured for nodes with MIG"},
		{"MPS on nodes that will have MIG", []change{nodes("a100-plain"), label(labelMIGConfig, "balanced"),
			withConfig(layouts), withConfig(mpsOf(4))}, "plugin-config", Problem, "MPS is configured for nodes with MIG"},
		{"MPS on nodes beside nodes with MIG", []change{mig, label(labelPluginConfig, "other"), nodes("h100-mps-plugin"), withConfig(mpsOf(4)),
			configAs("other", shared)}, "plugin-config", "", "MPS is configured for nodes with MIG"},
		{"MPS beside strategy single", []change{withConfig(mpsOf(4) + "flags: {migStrategy: single}\n")},
			"plugin-config", Warning, "beside migStrategy: single"},
		{"MPS without MIG", []change{nodes("h100-mps-plugin"), withConfig(mpsOf(4))}, "plugin-config", "", ""},
		{"20 MPS clients on a V100", append(v100(20), withConfig(mpsOf(20))), "mps-clients", Problem, "before compute capability 7.5"},
		{"20 MPS clients on a V100 by its labels", v100(20), "mps-clients", Problem, "before compute capability 7.5"},
		{"16 MPS clients on a V100", append(v100(16), withConfig(mpsOf(16))), "mps-clients", "", ""},
		{"20 MPS clients on an H100", []change{nodes("h100-mps-plugin"), withConfig(mpsOf(20))}, "mps-clients", "", ""},
		{"20 MPS clients on a T4", []change{nodes("t4-plain-old-driver"), withConfig(mpsOf(20))}, "mps-clients", "", ""},
		{"MPS keeps names", []change{withConfig(mpsOf(4))}, "sharing", Warning, "keep the name"},
		{"exclusive nodes by one replica", []change{withConfig(one)}, "plugin-config", Problem, "does not start"},
		{"no advice on how to share where nothing starts", []change{withConfig(one)}, "sharing", "", ""},
		{"fields in the wrong place",
			[]change{withConfig(strings.ReplaceAll(shared, "    renameByDefault", "    failOnInitError: false\n    renameByDefault"))},
			"plugin-config", Warning, "ignores fields"},
		{"a slip in a sharing strategy", []change{withConfig(slip("timeSlicing", "timeSlicng"))},
			"plugin-config", Problem, "ignores fields of its configuration, and shares nothing"},
		{"a slip in a sharing strategy is one finding", []change{withConfig(slip("timeSlicing", "timeSlicng"))}, "sharing", "", ""},
		{"a slip in replicas", []change{withConfig(slip("replicas", "replica"))}, "plugin-config", Problem, "does not start"},
		{"a slip in replicas is one finding", []change{withConfig(slip("replicas", "replica"))}, "plugin-config", "", "ignores fields"},
		{"a slip in renaming", []change{withConfig(slip("renameByDefault", "renameByDefualt"))}, "plugin-config", Warning, "ignores fields"},
		{"a slip in renaming is one finding", []change{withConfig(slip("renameByDefault", "renameByDefualt"))}, "sharing", "", ""},
		{"a slip in a flag", []change{withConfig("version: v1\nflags: {migStratgey: mixed}\n")}, "plugin-config", Warning, "ignores fields"},
		{"a name in another case that the plugin reads", []change{withConfig(slip("timeSlicing", "timeslicing"))}, "plugin-config", "", ""},
		{"a good configuration", []change{withConfig(shared)}, "plugin-config", "", ""},
		{"MPS with MIG under names of its own", []change{withConfig(mpsOf(4) + "flags: {migStrategy: mixed}\n")},
			"plugin-config", Problem, "no MPS where MIG"},
		{"no advice on how to share by MPS where nothing starts", []change{withConfig(mpsOf(4) + "flags: {migStrategy: mixed}\n")}, "sharing", "", ""},
		{"MPS and time-slicing", []change{withConfig(mpsOf(4) + "  timeSlicing:\n    resources: [{name: nvidia.com/gpu, replicas: 4}]\n")},
			"plugin-config", Warning, "uses MPS alone"},
		{"chosen devices", []change{withConfig(strings.ReplaceAll(shared, "replicas: 4", "devices: [0], replicas: 4"))},
			"plugin-config", Note, "selections of devices"},
		{"a node's configuration", []change{l4, label(labelPluginConfig, "any"), withConfig(shared)}, "plugin-selection", "", ""},
		{"a node's configuration that is not there", []change{l4, label(labelPluginConfig, "other"), withConfig(shared)},
			"plugin-selection", Problem, "does not exist"},
		{"a default configuration that is not there",
			[]change{operator("{devicePlugin: {config: {name: config, default: other}}}"), withConfig(shared)},
			"plugin-selection", Problem, "does not exist"},
		{"an operator", []change{operator("{driver: {version: 580.95.05}, devicePlugin: {config: {name: config}}}"), withConfig(shared)},
			"cluster-policy", OK, "deploys NVIDIA's software"},
		{"an operator whose ConfigMap is not there", []change{operator("{devicePlugin: {config: {name: sharing}}}")},
			"cluster-policy", Problem, "names a ConfigMap"},
		{"the MIG manager's default ConfigMap", []change{operator("{migManager: {config: {name: default-mig-parted-config}}}")},
			"cluster-policy", "", "names a ConfigMap"},
		{"a T4 in 16", sharedIn("t4-plain-old-driver", "time-slicing", 16), "replica-size", Warning, "half of each replica"},
		{"a T4 in 40", sharedIn("t4-plain-old-driver", "time-slicing", 40), "replica-size", Problem, "smaller than a CUDA context"},
		{"a T4 in 4", sharedIn("t4-plain-old-driver", "time-slicing", 4), "replica-size", "", ""},
		{"replicas that nobody has", []change{l4, noPods}, "unused-replicas", Note, "no pod has a replica of pool l4-time-slicing-4"},
		{"replicas that a pod has", []change{l4, noPods, holds("l4-1", "nvidia.com/gpu.shared")}, "unused-replicas", "", ""},
		{"a GPU that a pod has under a name that was changed", []change{l4, noPods, holds("l4-1", "nvidia.com/gpu")},
			"held-twice", Problem, "offered again under another name"},
		{"an instance that a pod has under a name that was changed", []change{l4, noPods, holds("l4-1", "nvidia.com/mig-1g.10gb")},
			"held-twice", Problem, "offered again under another name"},
		{"a GPU that a pod has under its name", []change{l4, noPods, holds("l4-1", "nvidia.com/gpu.shared")}, "held-twice", "", ""},
		{"a GPU that a pod waits for", []change{l4, noPods, holds("", "nvidia.com/gpu")}, "held-twice", "", ""},
		{"a network card that a pod has", []change{l4, noPods, holds("l4-1", "nvidia.com/hostdev")}, "held-twice", "", ""},
		{"replicas that a pod waits for", []change{l4, noPods, holds("", "nvidia.com/gpu.shared")}, "unused-replicas", "", ""},
		{"replicas, and pods are not known", []change{l4}, "unused-replicas", "", ""},
		{"replicas, and some pods are not known", []change{l4, noPods, unreadPods}, "unused-replicas", "", ""},
		{"instances that nobody has", []change{mig, noPods},
			"unused-instances", Note, "no pod has a MIG instance of pool a100-sxm4-80gb-1g.10gb-mig"},
		{"instances that a pod waits for", []change{mig, noPods, holds("", "nvidia.com/mig-1g.10gb"), holds("", "nvidia.com/mig-2g.20gb")},
			"unused-instances", "", ""},
		{"replicas spread by default", []change{l4, label("nvidia.com/gpu.count", "8"), pluginOf("v0.20.0")},
			"allocation-policy", Note, "spreads replicas"},
		{"replicas spread by an image with a digest", []change{l4, label("nvidia.com/gpu.count", "8"), pluginOf("v0.20.0@sha256:00")},
			"allocation-policy", Note, "spreads replicas"},
		{"replicas spread by a later major version", []change{l4, label("nvidia.com/gpu.count", "8"), pluginOf("v1.0.0")},
			"allocation-policy", Note, "spreads replicas"},
		{"a device plugin without a version", []change{l4, label("nvidia.com/gpu.count", "8"), pluginOf("latest")}, "allocation-policy", "", ""},
		{"replicas spread by a flag",
			[]change{l4, label("nvidia.com/gpu.count", "8"), pluginOf("v0.21.1-ubi9", "--shared-devices-allocation-policy=distributed")},
			"allocation-policy", Note, "spreads replicas"},
		{"replicas packed", []change{l4, label("nvidia.com/gpu.count", "8"), pluginOf("v0.20.0", "--shared-devices-allocation-policy=packed")},
			"allocation-policy", "", ""},
		{"replicas packed by a configuration", []change{l4, label("nvidia.com/gpu.count", "8"), pluginOf("v0.20.0"), withConfig(packed)},
			"allocation-policy", "", ""},
		{"a flag counts before a configuration", []change{l4, label("nvidia.com/gpu.count", "8"),
			pluginOf("v0.20.0", "--shared-devices-allocation-policy=distributed"), withConfig(packed)},
			"allocation-policy", Note, "spreads replicas"},
		{"a configuration of a new device plugin", []change{pluginOf("v0.20.0"), withConfig(packed)}, "plugin-config", "", ""},
		{"and of an old one", []change{pluginOf("v0.19.2"), withConfig(packed)}, "plugin-config", Warning, "ignores fields"},
		{"a device plugin that cannot pack", []change{l4, label("nvidia.com/gpu.count", "8"), pluginOf("v0.19.2")}, "allocation-policy", "", ""},
		{"replicas of one GPU", []change{l4, pluginOf("v0.20.0")}, "allocation-policy", "", ""},
		{"parts of an L4", []change{granularL4, nodes("l4-granular")}, "gpu-nodes", OK, "21 parts of 1063Mi a device; slices up to 21.8Gi"},
		{"parts of an L4 are no small replicas", []change{granularL4, nodes("l4-granular")}, "replica-size", "", ""},
		{"parts that the plugin gives", []change{granularL4, withConfig(several)}, "sharing", OK, "may take several parts"},
		{"parts that the plugin denies", []change{granularL4, withConfig(strings.ReplaceAll(shared, "replicas: 4", "replicas: 21"))},
			"sharing", Problem, "denies each pod of granular pool l4-parts"},
		{"several replicas elsewhere", []change{granularL4, withConfig(strings.ReplaceAll(several, "replicas: 21", "replicas: 4"))},
			"sharing", Warning, "two replicas may be requested"},
		{"parts of two GPUs", []change{granularL4, nodes("l4-granular-two-gpus")},
			"granular-pools", Problem, "nodes of granular pool l4-parts are left out"},
		{"parts of one GPU", []change{granularL4, nodes("l4-granular"), partsOn(21, 1063)}, "granular-pools", "", ""},
		{"other parts under a pod", []change{granularL4, nodes("l4-granular"), partsOn(42, 531)},
			"granular-pools", Problem, "parts of another size"},
		{"other memory under a pod", []change{granularL4, nodes("l4-granular"), partsOn(21, 1100)},
			"granular-pools", Problem, "parts of another size"},
		{"parts of nobody's", []change{granularL4, nodes("l4-granular"), partsOn(0, 0)},
			"granular-pools", Problem, "without a slice of the pool"},
		{"a quota on parts", []change{granularL4, nodes("l4-granular"), quota("a", "requests.nvidia.com/gpu.shared")},
			"granular-pools", Note, "count parts of 1063Mi"},
		{"64 MPS clients in a configuration", []change{withConfig(mpsOf(64))}, "mps-clients", Problem, "more replicas than an MPS daemon"},
		{"48 MPS clients in a configuration", []change{withConfig(mpsOf(48))}, "mps-clients", "", ""},
		{"64 MPS clients on nodes", sharedIn("h100-mps-plugin", "mps", 64), "mps-clients", Problem, "more replicas than an MPS daemon"},
		{"an MPS daemon with pipes of its own", []change{written(mpsDaemonSet(""))}, "mps-pipe", Problem, "inside its own container"},
		{"an MPS daemon with pipes on the host", []change{written(mpsDaemonSet("/tmp"))}, "mps-pipe", OK, "on the host"},
		{"an MPS daemon with another directory on the host", []change{written(mpsDaemonSet("/var/log"))},
			"mps-pipe", Problem, "inside its own container"},
		{"an own MPS daemon is one", []change{nodes("h100-mps-plugin"), written(mpsDaemonSet("/tmp"))}, "mps-daemon", "", ""},
		{"layouts", []change{mig, label(labelMIGConfig, "balanced"), withConfig(layouts)}, "mig-config", OK, "knows 2 layouts"},
		{"a layout that is not there", []change{mig, label(labelMIGConfig, "all-1g.5gb"), withConfig(layouts)},
			"mig-config", Problem, "layout does not exist"},
		{"layouts that are broken", []change{withConfig("version: v1\nmig-configs:\n  a: [{devices: all}]\n")},
			"mig-config", Problem, "cannot use"},
		{"strategy single and a mixed layout", []change{mig, label(labelMIGConfig, "balanced"), withConfig(layouts), single},
			"mig-strategy", Problem, "several profiles"},
		{"strategy single and a layout of one profile", []change{mig, label(labelMIGConfig, "all-1g.10gb"), withConfig(layouts), single},
			"mig-strategy", "", ""},
		{"strategy mixed and a mixed layout",
			[]change{mig, label(labelMIGConfig, "balanced"), withConfig(layouts), operator("{mig: {strategy: mixed}}")}, "mig-strategy", "", ""},
		{"devices that are not partitioned alike", []change{nodes("a100-mig-single"), label("nvidia.com/gpu.product", "NVIDIA-A100-MIG-INVALID")},
			"mig-strategy", Problem, "several profiles"},
		{"a guard that asks by a variable that nobody reads",
			[]change{l4, team("guard: {access: env}\n"), software("container-toolkit", 2, envFalse)},
			"guard-access", Problem, "by a variable, which"},
		{"an agent that nobody installed", []change{l4, team("guard: {mode: agent}\n")}, "agents", Problem, "there is none"},
		{"agents on some nodes", []change{l4, team("guard: {mode: agent}\n"), agents(1, 1)}, "agents", Problem, "for 1 of 2 nodes"},
		{"an agent that does not start", []change{l4, team("guard: {mode: agent}\n"), agents(2, 0)}, "agents", Warning, "0 of 2 agents"},
		{"agents", []change{l4, team("guard: {mode: agent}\n"), agents(2, 2)}, "agents", OK, "2 of 2 agents"},
		{"agents that no policy needs", []change{l4, agents(2, 2)}, "agents", OK, "2 of 2 agents"},
		{"agents on some nodes, and no policy needs them", []change{l4, agents(1, 1)}, "agents", Warning, "slices get a sidecar"},
		{"no agent, and no policy needs one", []change{l4}, "agents", "", ""},
		{"agents need no access of a guard's", []change{l4, team(""), agented, software("container-toolkit", 2, envFalse)},
			"guard-access", "", ""},
		{"an agent needs no access of a guard's",
			[]change{l4, team("guard: {mode: agent, access: env}\n"), software("container-toolkit", 2, envFalse)}, "guard-access", "", ""},
		{"a guard that asks by a mount", []change{l4, team("guard: {access: volume}\n"), software("container-toolkit", 2, envFalse, mounts)},
			"guard-access", "", ""},
		{"a guard that asks by a mount that nobody reads", []change{l4, team("guard: {access: volume}\n"), software("container-toolkit", 2)},
			"guard-access", Problem, "by a mount, which"},
		{"no guard", []change{l4, team("guard: {enabled: false}\n"), software("container-toolkit", 2, envFalse)}, "guard-access", "", ""},
		{"a runtime class that is not there", []change{l4, team("guard: {runtimeClassName: nvidia}\n")},
			"guard-access", Problem, "does not exist"},
		{"a runtime class", []change{l4, team("guard: {runtimeClassName: nvidia}\n"), runtimeClass, operator("{cdi: {enabled: true}}")},
			"guard-access", "", ""},
		{"CDI without a runtime class", []change{l4, team("guard: {access: env}\n"), operator("{cdi: {enabled: true}}")},
			"guard-access", Warning, "devices by CDI"},
		{"CDI by NRI", []change{l4, team("guard: {access: env}\n"), operator("{cdi: {enabled: true, nriPluginEnabled: true}}")},
			"guard-access", Warning, "devices by CDI"},
		{"auto without a runtime class", []change{l4, team("")}, "guard-access", OK, "reaches the driver: env"},
		{"auto with a runtime class", []change{l4, team(""), runtimeClass, operator("{cdi: {enabled: true}}")},
			"guard-access", OK, "env, runtime class nvidia"},
		{"auto with NRI", []change{l4, team("guard: {access: auto}\n"), operator("{cdi: {enabled: true, nriPluginEnabled: true}}")},
			"guard-access", Warning, "no guard is planned: the GPU Operator passes devices by CDI"},
		{"auto on GKE", []change{nodes("gke-t4-timesharing"), team("")}, "guard-access", Warning, "no guard is planned: GKE's"},
		{"auto where nobody reads the variable", []change{l4, team(""), software("container-toolkit", 2, envFalse)},
			"guard-access", Problem, "by a variable, which"},
		{"guards of two namespaces that read nothing", []change{guardsFailed("a", "b")},
			"guard-failures", Warning, "the last guards could not read"},
		{"two guards of one namespace that read nothing", []change{guardsFailed("a", "a")},
			"guard-failures", Warning, "a namespace's last guards"},
		{"one guard that reads nothing", []change{guardsFailed("a")}, "guard-failures", Note, "a guard could not read"},
		{"guards that read the GPUs", []change{guardsFailed()}, "guard-failures", "", ""},
		{"a limited pod, toolkit 1.20.1, driver 580", []change{l4, toolkitAt("v1.20.1"), limitedPod}, "driver-limits", Problem, "do not start"},
		{"no limited pod, toolkit 1.20.1, driver 580", []change{l4, toolkitAt("v1.20.1")}, "driver-limits", Note, "will not start"},
		{"a limited pod, an operator with toolkit 1.20.1", []change{l4, operator("{toolkit: {version: v1.20.1}}"), limitedPod},
			"driver-limits", Problem, "do not start"},
		{"an operator with toolkit 1.20.1 that installs driver 580",
			[]change{l4, operator("{toolkit: {version: v1.20.1}, driver: {version: 580.95.05}}")}, "driver-limits", Note, `one value away`},
		{"an operator with toolkit 1.20.1 that installs no driver",
			[]change{l4, operator("{toolkit: {version: v1.20.1}, driver: {enabled: false}}")}, "driver-limits", Note, "will not start"},
		{"a limited pod, toolkit 1.20.0", []change{l4, toolkitAt("v1.20.0"), limitedPod}, "driver-limits", "", ""},
		{"a limited pod, driver 615", []change{nodes("h200-driver-limits"), toolkitAt("v1.20.1"), limitedPod}, "driver-limits", "", ""},
		{"a device plugin in a governed namespace", []change{l4, namespace("nvidia", "", ""), software("nvidia-device-plugin", 2)},
			"governed-software", Warning, "governed namespace"},
		{"a container toolkit in a governed namespace", []change{l4, namespace("nvidia", "", ""), software("container-toolkit", 2)},
			"governed-software", Problem, "hides the devices"},
		{"the GPU Operator's validator in a governed namespace", []change{l4, namespace("nvidia", "", ""), software("nvidia-operator-validator", 2)},
			"governed-software", Problem, "denied for their nodeName"},
		{"the GPU Operator in a governed namespace, before the first node", []change{namespace("nvidia", "", ""), operator("{}")},
			"governed-software", Problem, "denied for their nodeName"},
		{"the GPU Operator elsewhere", []change{l4, team(""), operator("{}"), software("nvidia-operator-validator", 2)}, "governed-software", "", ""},
		{"a device plugin elsewhere", []change{l4, team(""), software("nvidia-device-plugin", 2)}, "governed-software", "", ""},
		{"variables from files on Kubernetes 1.33", []change{namespace("a", "", envFilesPolicy), minorVersion("33")},
			"env-files", Problem, "EnvFiles may be off"},
		{"variables from files on Kubernetes 1.34", []change{namespace("a", "", envFilesPolicy), minorVersion("34")},
			"env-files", Note, "is not known"},
		{"variables from files on Kubernetes 1.34 with other gates",
			[]change{namespace("a", "", envFilesPolicy), minorVersion("34"), gated("A=true")}, "env-files", Warning, "EnvFiles may be off"},
		{"variables from files on kubelets 1.34",
			[]change{l4, namespace("a", "", envFilesPolicy), minorVersion("34"), gated("EnvFiles=true"), kubelets("v1.34.2")},
			"env-files", Note, "is not known"},
		{"variables from files on an older node, and one that is not known",
			[]change{l4, namespace("a", "", envFilesPolicy), minorVersion("34"), kubelets("v1.33.2")}, "env-files", Problem, "EnvFiles may be off"},
		{"variables from files on an older node of GPUs by dynamic resource allocation",
			[]change{nodeWithoutPlugin("d"), published("d", "80Gi"), deviceClass("gpu.nvidia.com", ""),
				namespace("a", "", envFilesPolicy+"\nstrategies: [claim]"), kubelets("v1.33.1")}, "env-files", Problem, "EnvFiles may be off"},
		{"variables from files on an older node without GPUs",
			[]change{nodeWithoutPlugin("d"), namespace("a", "", envFilesPolicy), kubelets("v1.33.1")}, "env-files", "", ""},
		{"variables from files on Kubernetes 1.34 with the feature",
			[]change{namespace("a", "", envFilesPolicy), minorVersion("34"), gated("EnvFiles=true")}, "env-files", "", ""},
		{"variables from files on Kubernetes 1.35 without the feature",
			[]change{namespace("a", "", envFilesPolicy), minorVersion("35"), gated("A=true,EnvFiles=false")},
			"env-files", Warning, "EnvFiles may be off"},
		{"variables from files on Kubernetes 1.35+", []change{namespace("a", "", envFilesPolicy), minorVersion("35+")}, "env-files", "", ""},
		{"variables from files on an older node", []change{l4, namespace("a", "", envFilesPolicy), kubelets("v1.33.1")},
			"env-files", Problem, "EnvFiles may be off"},
		{"variables from files on newer nodes", []change{l4, namespace("a", "", envFilesPolicy), kubelets("v1.36.0-eks-1")}, "env-files", "", ""},
		{"no variables from files on Kubernetes 1.33", []change{namespace("a", "", `frameworks: {pytorch: {shim: "on"}}`), minorVersion("33")},
			"env-files", "", ""},
		{"a LimitRange below the guard", []change{team(""), written(limitRange("max: {memory: 32Mi}"))},
			"limit-ranges", Problem, "leaves no room for the guard"},
		{"a LimitRange beside the guard", []change{team(""), written(limitRange("min: {cpu: 10m}, max: {memory: 64Gi}, default: {cpu: 1}"))},
			"limit-ranges", "", ""},
		{"a LimitRange that gives GPUs", []change{team(""), written(limitRange("default: {nvidia.com/gpu: 1}"))},
			"limit-ranges", Problem, "gives a GPU"},
		{"a LimitRange of pods below the guard", []change{team(""), written(limitRangeOf("Pod", "max: {memory: 32Mi}"))},
			"limit-ranges", Problem, "leaves no room for the guard"},
		{"a LimitRange of pods beside the guard", []change{team(""), written(limitRangeOf("Pod", "max: {memory: 8Gi}"))}, "limit-ranges", "", ""},
		{"a LimitRange of pods' GPUs", []change{team(""), written(limitRangeOf("Pod", "max: {nvidia.com/gpu: 4}"))},
			"limit-ranges", Problem, "limits a GPU of a pod"},
		{"a LimitRange of volumes", []change{team(""), written(limitRangeOf("PersistentVolumeClaim", "max: {storage: 1Mi}"))}, "limit-ranges", "", ""},
		{"a LimitRange of others", []change{namespace("b", "", ""), written(limitRange("min: {cpu: 100m}"))}, "limit-ranges", "", ""},
		{"a strict namespace in another case", []change{labeled("gpuslice.dev/enforce", "Strict")}, "namespace-labels", Warning, "has no effect"},
		{"a bypass that is none", []change{labeled("gpuslice.dev/bypass", "yes")}, "namespace-labels", Warning, "has no effect"},
		{"a label's name in another case", []change{labeled("gpuslice.dev/Fail", "open")}, "namespace-labels", Warning, "has no effect"},
		{"a strict namespace", []change{labeled("gpuslice.dev/enforce", "strict")}, "namespace-labels", "", ""},
		{"no bypass", []change{labeled("gpuslice.dev/bypass", "false")}, "namespace-labels", "", ""},
		{"a bypass", []change{labeled("gpuslice.dev/bypass", "true")}, "namespace-labels", "", ""},
		{"AlwaysPullImages", withGuard("", "NodeRestriction,AlwaysPullImages"), "image-pulls", Note, "with its own credentials"},
		{"AlwaysPullImages, and a pull secret", withGuard("registry", "NodeRestriction,AlwaysPullImages"), "image-pulls", "", ""},
		{"no AlwaysPullImages", withGuard("", "NodeRestriction"), "image-pulls", "", ""},
	}
}

// guardsFailed is a state in which a guard of each of the namespaces could not read the GPUs.
func guardsFailed(namespaces ...string) change {
	return func(_ *testing.T, f *Facts) {
		var reports []guardaccess.Report
		for n, namespace := range namespaces {
			reports = append(reports,
				guardaccess.Report{Pool: "l4", Access: "env", Namespace: namespace, Started: at.Add(time.Duration(n-60) * time.Minute),
					Outcome: guardaccess.Fails, Reason: "initialise NVML: library not found"})
		}
		failures := guardaccess.Failures{}.Update(reports, at)
		f.State = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{guardaccess.Annotation: failures.Encode()}}}
	}
}

const envFilesPolicy = "frameworks: {pytorch: {shim: env-files}}"

// gated is an API server that runs as a pod with feature gates.
func gated(gates string) change {
	return func(_ *testing.T, f *Facts) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-apiserver-1"}}
		p.Spec.Containers = []corev1.Container{{Name: "kube-apiserver", Command: []string{"kube-apiserver", "--feature-gates=" + gates}}}
		f.APIServers = append(f.APIServers, p)
	}
}

// nodeWithoutPlugin is a node that no device plugin offers anything on.
func nodeWithoutPlugin(name string) change {
	return func(_ *testing.T, f *Facts) {
		f.Nodes = append(f.Nodes,
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}}})
	}
}

// kubelets gives each node a version.
func kubelets(version string) change {
	return func(_ *testing.T, f *Facts) {
		for _, node := range f.Nodes {
			node.Status.NodeInfo.KubeletVersion = version
		}
	}
}

// TestNamespaceLabelRemedy: a manifest takes the values as the remedy has them, "true" in quotes.
func TestNamespaceLabelRemedy(t *testing.T) {
	for key, want := range map[string]string{"gpuslice.dev/bypass": `gpuslice.dev/bypass: "true",`,
		"gpuslice.dev/fail": `gpuslice.dev/fail: "open" or "open-for-claims",`} {
		found := checkNamespaceLabels(facts(t, labeled(key, "yes")))
		if len(found) != 1 || !strings.Contains(found[0].Remedy, want) {
			t.Errorf("%+v, want a remedy with %s", found, want)
		}
	}
}
