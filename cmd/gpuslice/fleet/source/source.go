// Package source gives commands a fleet: from a file that gpuslice snapshot wrote, or read from a cluster.
//
//	nodes, ResourceSlices, policies -> pools and offers (nodes.go)
//	pods, what gpuslice wrote on them, agents' measurements -> pods (pods.go)
package source

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/cmd/client/budget"
	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/inventory"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/scrape"
	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/quota"
	webhookcluster "github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// Flags name where a fleet comes from.
type Flags struct {
	Kube   kube.Flags
	System string // namespace of the installation
	From   string // file; "": the cluster

	usage bool
}

// Register registers the flags of a command that reads a cluster.
func (f *Flags) Register(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.Kube.Register(flags)
	cli.SystemNamespaceFlag(flags, &f.System)
	flags.BoolVar(&f.usage, "usage", true, "read what containers use now from agents and guards")
}

// RegisterFrom registers --from for a command that can read a file instead.
func (f *Flags) RegisterFrom(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.From, "from", "", "`FILE` that gpuslice snapshot wrote; -: standard input (default: the cluster)")
}

// Read reads the fleet.
func (f *Flags) Read(ctx context.Context, s cli.Streams) (*inventory.Fleet, error) {
	switch f.From {
	case "":
		return f.readCluster(ctx, s)
	case "-":
		return inventory.Read(s.In)
	}
	return ReadFile(f.From)
}

// ReadFile reads a file that gpuslice snapshot wrote.
func ReadFile(path string) (*inventory.Fleet, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the snapshot: %w", err)
	}
	defer file.Close()
	out, err := inventory.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

// reader reads one cluster.
type reader struct {
	*kube.Connection
	system string
	err    io.Writer
	out    *inventory.Fleet

	nodes  map[string]*inventory.Node
	usages scrape.Pods
	odd    map[string]int // pods with notes, by namespace
	pools  []pools.Pool
	others map[string]*others // by resource
}

func (f *Flags) readCluster(ctx context.Context, s cli.Streams) (*inventory.Fleet, error) {
	connection, err := f.Kube.Connect(s)
	if err != nil {
		return nil, err
	}
	r := &reader{Connection: connection, system: f.System, err: s.Err, out: inventory.New(s.Now()), nodes: map[string]*inventory.Node{},
		others: map[string]*others{}}
	r.out.Version = s.Version
	if err := r.readNodes(ctx); err != nil {
		return nil, err
	}
	if _, err := kube.EachPod(ctx, r.Client.CoreV1().Pods(metav1.NamespaceAll), metav1.ListOptions{}, r.addPod); err != nil {
		return nil, fmt.Errorf("read pods of every namespace: %w", err)
	}
	if f.usage {
		if err := r.readUsage(ctx); err != nil {
			return nil, err
		}
	}
	if err := r.readQuotas(ctx); err != nil {
		return nil, err
	}
	r.noteMore()
	r.noteOthers()
	r.out.Sort()
	return r.out, nil
}

// maxPodNotes is how many notes on pods of a namespace are kept.
const maxPodNotes = 10

// notePod is a note on a pod, of which a tenant may have thousands.
func (r *reader) notePod(p *corev1.Pod, problem string) {
	if r.odd == nil {
		r.odd = map[string]int{}
	}
	if r.odd[p.Namespace]++; r.odd[p.Namespace] <= maxPodNotes {
		r.note(fmt.Sprintf("pod %s/%s%s", p.Namespace, p.Name, problem))
	}
}

// noteMore counts the pods on which notes are left out.
func (r *reader) noteMore() {
	for _, namespace := range slices.Sorted(maps.Keys(r.odd)) {
		if more := r.odd[namespace] - maxPodNotes; more > 0 {
			r.note(fmt.Sprintf("namespace %s: notes on %d more pods are left out", namespace, more))
		}
	}
}

// lacks reports the gap in the fleet because of a missing right. Any other error is returned.
func (r *reader) lacks(what string, err error) error {
	if err == nil || !apierrors.IsForbidden(err) {
		return err
	}
	r.note(fmt.Sprintf("%s: %v", what, err))
	return nil
}

// maxSentence is how many bytes of a sentence are kept: another system may have written it.
const maxSentence = 1000

// note keeps and prints a sentence about unknown facts.
func (r *reader) note(text string) {
	text = shorten.Line(text, maxSentence)
	r.out.Unread = append(r.out.Unread, text)
	fmt.Fprintln(r.err, text)
}

// readObjects reads the objects of pools.
func (r *reader) readObjects(ctx context.Context, nodes []*corev1.Node) (objects webhookcluster.Objects, err error) {
	objects.Source, err = installed.Source(ctx, r.Client, nodes)
	if err := r.lacks("pools of dynamic resource allocation are unknown", err); err != nil {
		return objects, err
	}
	if objects.Policies, err = installed.Policies(ctx, r.Client, r.system); err == nil {
		objects.State, err = installed.State(ctx, r.Client, r.system)
	}
	return objects, r.lacks("pools that policies declare are unknown", err)
}

// readQuotas reads how budgets stand.
func (r *reader) readQuotas(ctx context.Context) error {
	all, err := budget.Read(ctx, budget.Cluster{Client: r.Client, System: r.system}, "")
	if err := r.lacks("quotas are unknown", err); err != nil {
		return err
	}
	for _, b := range all {
		if b.Counted && len(b.Figures) > 0 {
			r.out.Quotas = append(r.out.Quotas,
				inventory.Quota{Budget: b.Budget, Namespaces: b.Namespaces, Figures: append([]quota.Figure{}, b.Figures...)})
		}
	}
	return nil
}
