package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/deploy"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

// Names that the manifests give.
const (
	service = "gpuslice-webhook"
	account = "gpuslice-webhook"
)

// Installation is gpuslice on an API server.
type Installation struct {
	Server  *cluster.APIServer
	Apply   *Applier
	Webhook *Process // the first of Replicas
	// Replicas are all that the API server knows.
	Replicas []*Process

	documents documents
	nodes     int
	runtimes  pools.Runtimes
	failures  guardaccess.Failures
	again     func(ctx context.Context, reviews, probes string) (*Process, error)
	more      func(ctx context.Context, name, binary string) (*Process, error)
	shifted   func(binary string, ahead time.Duration) (*Process, error)
	binary    string
	started   int // successors
}

// Options say how gpuslice is installed beside the usual.
type Options struct {
	Replicas int // default 1
	// Through changes how the replicas reach the API server, given their own access; nil: as it is.
	Through func(*rest.Config) (*rest.Config, error)
	// Arguments are further flags of each replica; of one that is given twice the later counts.
	Arguments []string
}

// New applies the manifests and starts the webhook's process. The Deployment is left out: there is no node for its pods,
// so the process runs beside the API server, with the token of its own ServiceAccount. dir takes logs and kubeconfigs.
func New(ctx context.Context, server *cluster.APIServer, binary, dir string) (*Installation, error) {
	return NewWith(ctx, server, binary, dir, Options{})
}

// NewWith is New with options.
func NewWith(ctx context.Context, server *cluster.APIServer, binary, dir string, o Options) (*Installation, error) {
	applier, err := NewApplier(quiet(server.Config))
	if err != nil {
		return nil, err
	}
	i := &Installation{Server: server, Apply: applier, documents: documents{}, binary: binary}
	if err := i.manifests(ctx); err != nil {
		return nil, err
	}
	conf, err := server.ServiceAccount(ctx, api.SystemNamespace, account)
	if err == nil && o.Through != nil {
		conf, err = o.Through(conf)
	}
	if err != nil {
		return nil, err
	}
	flags := append(arguments(), o.Arguments...)
	i.again = func(ctx context.Context, reviews, probes string) (*Process, error) {
		return startAt(ctx, reviews, probes, binary, dir, "webhook-"+probes[strings.LastIndex(probes, ":")+1:], conf, flags...)
	}
	i.shifted = func(binary string, ahead time.Duration) (*Process, error) {
		reviews, probes, err := freeAddresses()
		if err != nil {
			return nil, err
		}
		return launch(reviews, probes, binary, dir, "shifted-"+ahead.String(), conf,
			[]string{fmt.Sprintf("%s=%d", shift, int(ahead.Seconds()))}, flags...)
	}
	i.more = func(ctx context.Context, name, binary string) (*Process, error) {
		return startProcess(ctx, binary, dir, name, conf, flags...)
	}
	var backends []string
	for range max(o.Replicas, 1) {
		p, err := i.more(ctx, "webhook-"+strconv.Itoa(len(backends)), binary)
		if err != nil {
			i.Stop()
			return nil, err
		}
		i.Replicas, backends = append(i.Replicas, p), append(backends, p.Reviews)
	}
	i.Webhook = i.Replicas[0]
	if err := server.SetEndpoints(ctx, api.SystemNamespace, service, backends...); err != nil {
		return nil, err
	}
	return i, nil
}

// arguments are the settings of the process beside those that say where it listens.
func arguments() []string {
	return []string{"--drain", "0s", "--guard-image", "gpuslice/guard:test"}
}

// notBeside are the kinds that stand for the webhook's pods, which do not run where its process does.
var notBeside = []string{"Deployment", "PodDisruptionBudget"}

func (i *Installation) manifests(ctx context.Context) error {
	names, err := fs.Glob(deploy.Files, "*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		b, err := fs.ReadFile(deploy.Files, name)
		if err != nil {
			return err
		}
		if err := i.Apply.Apply(ctx, b, notBeside...); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Policy writes a policy document as a ConfigMap of the system namespace.
func (i *Installation) Policy(ctx context.Context, name string, document []byte) error {
	return i.documents.write(ctx, i.Server.Client, name, document)
}

// RemovePolicy deletes a policy document of the system namespace.
func (i *Installation) RemovePolicy(ctx context.Context, name string) error {
	delete(i.documents, api.SystemNamespace+"/"+name)
	if err := i.Server.Client.CoreV1().ConfigMaps(api.SystemNamespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete policy %s: %w", name, err)
	}
	return nil
}

// TenantPolicy writes a tenant's own document into its namespace, as the user of config.
func (i *Installation) TenantPolicy(ctx context.Context, conf *rest.Config, namespace string, document []byte) error {
	client, err := kubernetes.NewForConfig(conf)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	return i.documents.put(ctx, client, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: api.TenantPolicyName},
		Data:       map[string]string{api.PolicyKey: string(document)},
	})
}

// Nodes makes exactly these nodes those of the cluster.
func (i *Installation) Nodes(ctx context.Context, nodes ...*corev1.Node) error {
	client := i.Server.Client.CoreV1().Nodes()
	have, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for _, n := range have.Items {
		if err := client.Delete(ctx, n.Name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete node %s: %w", n.Name, err)
		}
	}
	for _, n := range nodes {
		made, err := client.Create(ctx, n.DeepCopy(), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create node %s: %w", n.Name, err)
		}
		made.Status, made.ResourceVersion = n.Status, "" // controllers write to it meanwhile
		if _, err := client.UpdateStatus(ctx, made, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("write status of node %s: %w", n.Name, err)
		}
	}
	i.nodes = len(nodes)
	return nil
}

// Settle returns once every replica has seen every policy and node that was written.
func (i *Installation) Settle(ctx context.Context, offered ...string) error {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	for _, p := range i.Replicas {
		if err := p.WaitState(ctx, "see the policies and nodes", i.settled(offered)); err != nil {
			return err
		}
	}
	return i.answered(ctx)
}

// settleWithin bounds steps that take some tenths of a second.
const settleWithin = 30 * time.Second

// settled reports whether the webhook knows every policy and node that was written, and the pools of these names.
func (i *Installation) settled(offered []string) func(State) bool {
	return func(s State) bool {
		if i.documents.missing(s) != nil {
			return false
		}
		for _, name := range offered {
			if !slices.ContainsFunc(s.Pools, func(p PoolState) bool { return p.Name == name }) {
				return false
			}
		}
		return s.Nodes == i.nodes && reflect.DeepEqual(s.Runtimes, i.runtimes) && s.knows(i.failures)
	}
}

// answered returns once the API server reaches the webhook: it learns of endpoints through a watch, and until then lets
// pods pass as they are.
func (i *Installation) answered(ctx context.Context) error {
	if err := i.Policy(ctx, probe, []byte("apiVersion: "+config.APIVersion+"\nnamespaces: {names: ["+probe+"]}\n")); err != nil {
		return err
	}
	if err := i.Server.Namespace(ctx, probe, nil); err != nil && !apierrors.IsAlreadyExists(errors.Unwrap(err)) {
		return err
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: probe, Labels: map[string]string{api.LabelMemory: "deny-me"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
	}
	return i.Webhook.poll(ctx, "be called", func() (bool, string) {
		_, err := i.Server.Client.CoreV1().Pods(probe).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "deny-me"), "the API server does not call it"
	})
}

// probe is the namespace, policy and pod by which an installation tries itself.
const probe = "gpuslice-probe"

// Stop ends the webhook's processes.
func (i *Installation) Stop() {
	for _, p := range i.Replicas {
		p.Stop()
	}
}

// quiet keeps the server's warnings off standard error; for these, see Applier.Warning.
func quiet(conf *rest.Config) *rest.Config {
	conf = rest.CopyConfig(conf)
	conf.WarningHandler = rest.NoWarnings{}
	return conf
}
