package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/gpuslice/gpuslice/test/cluster/box"
	"github.com/gpuslice/gpuslice/test/cluster/internal/run"
)

// kubeletConfig takes the folder of the cluster, that of its certificates, the socket of containerd and the
// node's address.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
# Off by default since Kubernetes 1.35; a node on cgroup v2 does not look at it.
failCgroupV1: false
cgroupDriver: cgroupfs
# Without CAP_SYS_RESOURCE a lower score than the parent's may not be set.
oomScoreAdj: 0
failSwapOn: false
containerRuntimeEndpoint: unix://%[3]s
address: %[4]s
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %[2]s/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: %[2]s/kubelet.crt
tlsPrivateKeyFile: %[2]s/kubelet.key
resolvConf: %[1]s/resolv.conf
# Nobody answers there. Without an address the kubelet writes an Event about it at each sync of each pod, and after 25
# Events of a pod it drops the next, those that tests wait for among them.
clusterDNS: ["%[4]s"]
clusterDomain: cluster.local
volumePluginDir: %[1]s/volume-plugins
maxOpenFiles: 20000
evictionHard: {memory.available: 50Mi, nodefs.available: 1%%, imagefs.available: 1%%, nodefs.inodesFree: 0%%}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
nodeStatusUpdateFrequency: 1s
syncFrequency: 5s
`

// configureKubelet writes the kubelet's settings.
func (n *Node) configureKubelet() error {
	if err := n.pki.server("kubelet", box.NodeName, box.NodeIP); err != nil {
		return err
	}
	files := map[string]string{
		"kubelet.yaml": fmt.Sprintf(kubeletConfig, n.Dir, n.pki.dir, containerdSocket, box.NodeIP),
		// There is no DNS; pods get this as it is.
		"resolv.conf": "nameserver " + box.NodeIP + "\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(n.Dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

func (n *Node) startKubelet() (err error) {
	n.kubelet, err = run.Start(n.Dir, "kubelet", exec.Command(n.bin["kubelet"],
		"--config="+filepath.Join(n.Dir, "kubelet.yaml"), "--kubeconfig="+n.kubeconfigOf(kubeletUser),
		"--hostname-override="+box.NodeName, "--node-ip="+box.NodeIP, "--v=2"))
	return err
}
