package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/test/cluster/internal/run"
)

// Options describe the start. The zero value and Bin are enough.
type Options struct {
	// Bin holds the programs, from Build(ctx, progress, ControlPlane()...).
	Bin Bin
	// ControllerManager starts kube-controller-manager too: workloads then make pods, namespaces get their
	// default ServiceAccount by themselves, quotas are recounted.
	ControllerManager bool
	// Scheduler starts kube-scheduler too: it binds pods to nodes that need no kubelet.
	Scheduler bool
	// Gates are feature gates of all parts, such as "GenericWorkload=true"; "": the defaults.
	Gates string
	// Flags are further arguments of kube-apiserver.
	Flags []string
	// ControllerFlags are further arguments of kube-controller-manager.
	ControllerFlags []string

	layout layout
}

// APIServer is a running etcd and kube-apiserver, with RBAC and all admission plugins that are on by default.
type APIServer struct {
	// Config is the administrator's, without client-side throttling.
	Config *rest.Config
	// Client is made from Config.
	Client *kubernetes.Clientset
	// Kubeconfig is a file with the same access.
	Kubeconfig string
	// Dir holds all files of this cluster, the logs among them, until Stop.
	Dir string

	bin    Bin
	flags  []string // of kube-apiserver
	gates  []string // the flag of feature gates, if any, of all parts
	folder *run.Folder
	pki    *pki
	egress *egress
	parts  []*run.Process
}

// folderKind names the folders of API servers.
const folderKind = "apiserver"

// sweep removes remains of killed runs.
func sweep() { run.Sweep(folderKind, func(string) error { return nil }) }

// attempts to find free ports: between looking for one and listening on it somebody else may take it.
const attempts = 3

// StartAPIServer starts a control plane on loopback ports and returns once it is ready and the default namespace takes
// pods. ctx bounds the start only; the caller must Stop the result. If this process is killed, so are the parts; its
// Dir is removed by the next start.
func StartAPIServer(ctx context.Context, o Options) (*APIServer, error) {
	sweep()
	for try := 1; ; try++ {
		s, err := startOnce(ctx, o)
		if err == nil {
			return s, nil
		}
		if try == attempts || !strings.Contains(err.Error(), "address already in use") {
			return nil, err
		}
	}
}

func startOnce(ctx context.Context, o Options) (_ *APIServer, err error) {
	folder, err := run.NewFolder(folderKind)
	if err != nil {
		return nil, err
	}
	s := &APIServer{Dir: folder.Path, folder: folder}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	if o.layout, err = loopback(); err != nil {
		return nil, err
	}
	if s.egress, err = newEgress(filepath.Join(s.Dir, "egress.sock")); err != nil {
		return nil, err
	}
	if err := s.launch(o); err != nil {
		return nil, err
	}
	if err := s.awaitReady(ctx); err != nil {
		return nil, err
	}
	if o.ControllerManager {
		if err := s.startControllerManager(o.ControllerFlags...); err != nil {
			return nil, err
		}
	}
	if o.Scheduler {
		if err := s.startScheduler(); err != nil {
			return nil, err
		}
	}
	return s, s.DefaultAccount(ctx, "default")
}

// launch writes the parts' settings and starts them in s.Dir.
func (s *APIServer) launch(o Options) (err error) {
	s.bin, s.Kubeconfig = o.Bin, filepath.Join(s.Dir, "kubeconfig")
	users := components()
	if err := s.credentials(users, o.layout); err != nil {
		return err
	}
	s.Config = restConfig(o.layout.url(), s.pki.path("ca.crt"), users[0].token)
	if s.Client, err = kubernetes.NewForConfig(s.Config); err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	if err := WriteKubeconfig(s.Kubeconfig, s.Config); err != nil {
		return err
	}
	for _, u := range users[1:] {
		config := restConfig(s.Config.Host, s.Config.CAFile, u.token)
		if err := WriteKubeconfig(s.kubeconfigOf(u.name), config); err != nil {
			return err
		}
	}
	if err := s.start("etcd", etcdFlags(s.Dir, o.layout)...); err != nil {
		return err
	}
	flags, err := s.apiServerFlags(o.layout)
	if err != nil {
		return err
	}
	if o.Gates != "" {
		s.gates = []string{"--feature-gates=" + o.Gates}
	}
	s.flags = slices.Concat(flags, s.gates, o.Flags)
	return s.start("kube-apiserver", s.flags...)
}

// kubeconfigOf returns the path of a component's access.
func (s *APIServer) kubeconfigOf(user string) string {
	return s.pki.path(strings.ReplaceAll(user, ":", "-") + ".kubeconfig")
}

// credentials writes certificates, the key of ServiceAccount tokens and the users' tokens.
func (s *APIServer) credentials(users []user, l layout) (err error) {
	if s.pki, err = newPKI(filepath.Join(s.Dir, "pki")); err != nil {
		return err
	}
	if err := s.pki.server("apiserver", append(l.hosts(), "localhost", "kubernetes.default.svc")...); err != nil {
		return err
	}
	if err := s.pki.client("kubelet-client", "kube-apiserver-kubelet-client", "system:masters"); err != nil {
		return err
	}
	if _, err := s.pki.keyPair("accounts"); err != nil {
		return err
	}
	return writeTokens(s.pki.path("tokens.csv"), users)
}

// start runs one of the cluster's programs.
func (s *APIServer) start(name string, args ...string) error { return s.startAs(name, name, args...) }

// startAs is start under another name, for a program that runs already.
func (s *APIServer) startAs(as, name string, args ...string) error {
	return s.startWith(nil, as, name, args...)
}

// startWith is startAs with further environment variables.
func (s *APIServer) startWith(env []string, as, name string, args ...string) error {
	if s.bin[name] == "" {
		return fmt.Errorf("start %s: not among the programs given (cluster.Build makes them)", name)
	}
	cmd := exec.Command(s.bin[name], args...)
	cmd.Env = append(os.Environ(), env...)
	p, err := run.Start(s.Dir, as, cmd)
	if err != nil {
		return err
	}
	s.parts = append(s.parts, p)
	return nil
}

// awaitReady returns once the API server is ready, or why it never will be.
func (s *APIServer) awaitReady(ctx context.Context) error { return s.await(ctx, s.Client) }

func (s *APIServer) await(ctx context.Context, client *kubernetes.Clientset) error {
	poll := time.NewTicker(25 * time.Millisecond)
	defer poll.Stop()
	for {
		for _, p := range s.parts {
			if err := p.Failure(); err != nil {
				return err
			}
		}
		status := 0
		client.RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&status)
		if status == http.StatusOK {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the API server (log in %s): %w", s.Dir, context.Cause(ctx))
		case <-poll.C:
		}
	}
}

// Stop ends all parts, waits for them and removes Dir.
func (s *APIServer) Stop() error {
	for _, p := range s.parts {
		p.Kill()
	}
	if s.egress != nil {
		s.egress.close()
	}
	if s.folder == nil {
		return nil // it lies in a box, which is removed as a whole
	}
	return s.folder.Remove()
}
