package install

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/gpuslice/gpuslice/test/fakegpu"
)

// GPU makes the simulated GPU be that of c for pods of a namespace, the guard among them, from then on. It must be
// called before the first such pod is created; running pods see later changes at once. By default, a device's total is
// the use of the reader's own pod (see ShareGPU).
func (n *OnNode) GPU(namespace string, c fakegpu.Config) error {
	folder := n.gpuFolder(namespace)
	for _, f := range []string{configFolder, nodeFolder} {
		if err := os.MkdirAll(filepath.Join(folder, f), 0o755); err != nil {
			return fmt.Errorf("make the folder of a simulated GPU: %w", err)
		}
	}
	return c.WriteFile(filepath.Join(folder, configFolder, "config"))
}

// ShareGPU shows pods of a namespace created from then on the node's processes, so that the total of a device is the
// memory of all pods, as a driver has it. The config (GPU) should name a node of the namespace's own, and its tenants too,
// so that the pods of other namespaces do not count. It costs each reading the time to look at all
// processes of the node.
func (n *OnNode) ShareGPU(namespace string) error {
	folder := filepath.Join(n.gpuFolder(namespace), nodeFolder, filepath.Base(fakegpu.NodePath))
	if err := os.Mkdir(folder, 0o755); err != nil {
		return fmt.Errorf("make the folder of the node's processes: %w", err)
	}
	if err := unix.Mount("/proc", folder, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("show the node's processes: %w", err)
	}
	return nil
}

func (n *OnNode) gpuFolder(namespace string) string {
	if n.open {
		namespace = everyNamespace
	}
	return filepath.Join(n.Dir, gpusFolder, namespace)
}
