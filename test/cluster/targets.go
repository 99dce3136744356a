package cluster

// ControlPlane returns the targets that StartAPIServer needs, with kubectl. Where GPUSLICE_TEST has newest, the programs of
// NewestKubernetes come last, and take the places of those of the same names.
func ControlPlane() []Target {
	all := []Target{
		{name: "etcd", module: "kubernetes", packages: []string{"go.etcd.io/etcd/server/v3"}},
		{name: "hyperkube", module: "kubernetes", packages: []string{"./hyperkube"}, stamp: kubernetesVersion(),
			links: []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"}},
		{name: "kubectl", module: "kubernetes", packages: []string{"k8s.io/kubernetes/cmd/kubectl"}, stamp: kubernetesVersion()},
	}
	if Wanted("newest") {
		all = append(all, NewestKubernetes())
	}
	return all
}

func kubernetesVersion() map[string]string {
	return map[string]string{"k8s.io/component-base/version.gitVersion": "k8s.io/kubernetes"}
}

// OldestAPIServer returns the target with the oldest API server that gpuslice supports, the program kube-apiserver-oldest.
func OldestAPIServer() Target {
	return Target{name: "kube-apiserver-oldest", module: "kubernetes-oldest",
		packages: []string{"k8s.io/kubernetes/cmd/kube-apiserver"}, stamp: kubernetesVersion()}
}

// NewestKubernetes returns the target with the newest API server, controller manager and scheduler that gpuslice supports. They have
// the names of those of ControlPlane.
func NewestKubernetes() Target {
	const cmd = "k8s.io/kubernetes/cmd"
	return Target{name: "kubernetes-newest", module: "kubernetes-newest",
		packages: []string{cmd + "/kube-apiserver", cmd + "/kube-controller-manager", cmd + "/kube-scheduler"}, stamp: kubernetesVersion()}
}

// DRA returns the target that makes the driver of dynamic resource allocation of our own (modules/dra).
func DRA() Target { return Target{name: "dra", module: "dra", packages: []string{"."}} }

// NVIDIADRA returns the target that makes NVIDIA's driver of dynamic resource allocation. With the tags it shares what is compiled
// without cgo: half of Kubernetes' client.
func NVIDIADRA() Target {
	return Target{name: "nvidia-dra-driver", module: "nvidia-dra", cgo: true, tags: "netgo,osusergo",
		packages: []string{"sigs.k8s.io/dra-driver-nvidia-gpu/cmd/gpu-kubelet-plugin"}}
}

// NewestNVIDIAPlugin returns the target with the newest release of NVIDIA's device plugin and feature discovery, whose names are
// those of NodeParts.
func NewestNVIDIAPlugin() Target {
	const plugin = "github.com/NVIDIA/k8s-device-plugin/cmd"
	return Target{name: "nvidia-newest", module: "nvidia-newest", cgo: true, tags: "netgo,osusergo",
		packages: []string{plugin + "/nvidia-device-plugin", plugin + "/gpu-feature-discovery"}}
}

// Helm returns the target that makes helm, the command that users have. Its module and that of Prometheus have the versions of
// Kubernetes' client, and of what the client imports, that go.mod has: so much is compiled once.
func Helm() Target {
	return Target{name: "helm", module: "helm", packages: []string{"helm.sh/helm/v4/cmd/helm"}}
}

// OtherHelms returns the targets of the oldest Helm that gpuslice supports and of the newest Helm 3, beside that of Helm.
func OtherHelms() (all []Target) {
	for _, name := range []string{"helm-oldest", "helm-3"} {
		all = append(all, Target{name: name, module: name, packages: []string{"helm.sh/helm/v3/cmd/helm"}})
	}
	return all
}

// Prometheus returns the target with prometheus, promtool, and selectors, which prints the metrics that PromQL expressions name.
// Of the ways to find what to scrape it has the one for Kubernetes: with all of them it takes twice as long to build.
func Prometheus() Target {
	return Target{name: "prometheus", module: "prometheus", tags: "remove_all_sd,enable_kubernetes_sd",
		packages: []string{"github.com/prometheus/prometheus/cmd/prometheus", "github.com/prometheus/prometheus/cmd/promtool", "./selectors"}}
}

// NodeParts returns the targets that StartNode needs beside those of ControlPlane. They need a C compiler.
func NodeParts() []Target {
	const containerd = "github.com/containerd/containerd/v2"
	const plugins = "github.com/containernetworking/plugins/plugins"
	return append(append(Containers(), Toolkit()), []Target{
		{name: "containerd", module: "containerd", tags: "no_btrfs,no_devmapper,no_zfs",
			packages: []string{containerd + "/cmd/containerd", containerd + "/cmd/containerd-shim-runc-v2", containerd + "/cmd/ctr"},
			stamp:    map[string]string{containerd + "/version.Version": containerd}},
		{name: "cni", module: "cni",
			packages: []string{plugins + "/main/bridge", plugins + "/main/loopback", plugins + "/ipam/host-local"}},
		{name: "deviceplugin", module: "deviceplugin", packages: []string{"."}},
		{name: "nvidia-runtime", module: "../cmd/nvidia-runtime", packages: []string{"."}},
		{name: "nvidia", module: "nvidia", cgo: true, packages: []string{
			"github.com/NVIDIA/k8s-device-plugin/cmd/nvidia-device-plugin",
			"github.com/NVIDIA/k8s-device-plugin/cmd/gpu-feature-discovery",
			"github.com/NVIDIA/k8s-device-plugin/cmd/mps-control-daemon",
		}},
	}...)
}

// Toolkit returns the target with the programs of NVIDIA's container toolkit that make CDI specifications and run their hooks. They
// need a C compiler.
func Toolkit() Target {
	const toolkit = "github.com/NVIDIA/nvidia-container-toolkit/cmd"
	return Target{name: "toolkit", module: "toolkit", cgo: true, packages: []string{toolkit + "/nvidia-cdi-hook", toolkit + "/nvidia-ctk"}}
}

// Containers returns the targets that run the containers of a pod: runc, and the program pause, which holds a pod's namespaces.
// They need a C compiler.
func Containers() []Target {
	return []Target{
		// Without seccomp no pod starts: "config provided but seccomp not supported".
		{name: "runc", module: "runc", tags: "seccomp,netgo,osusergo", seccomp: true,
			packages: []string{"github.com/opencontainers/runc"}},
		{name: "pause", module: "../cmd/pause", packages: []string{"."}},
	}
}

// CertManager returns the target with cert-manager's controllers and cainjector, the program certmanager. It talks to the
// cluster of its --kubeconfig; CertManagerCRDs are its definitions there.
func CertManager() []Target {
	return []Target{{name: "certmanager", module: "certmanager", packages: []string{"."}}}
}

// Kyverno returns the target with Kyverno's admission controller, which test/bench compares with. It talks to the cluster of its
// --kubeconfig; KyvernoCRDs are its definitions there.
func Kyverno() Target {
	return Target{name: "kyverno", module: "kyverno", packages: []string{"github.com/kyverno/kyverno/cmd/kyverno"}}
}

// Karpenter returns the target with Karpenter and its own provider of nodes that no machine stands behind, the program kwok.
// KarpenterCRDs are its definitions.
func Karpenter() Target {
	return Target{name: "karpenter", module: "karpenter", packages: []string{"sigs.k8s.io/karpenter/kwok"}}
}
