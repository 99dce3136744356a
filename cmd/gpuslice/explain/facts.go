package explain

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/cmd/client/installed"
	"github.com/gpuslice/gpuslice/cmd/client/kube"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/admission/cluster"
)

// facts are the facts about one object.
type facts struct {
	subject
	pod        *corev1.Pod // nil: there is none, or the object is a workload
	found      bool        // the object exists
	events     []corev1.Event
	pods       []*corev1.Pod      // of a workload
	outdated   map[types.UID]bool // ReplicaSets of a Deployment's earlier templates
	atRest     map[types.UID]bool // of the workload and those that it made: its controller wants no other pod
	changed    time.Time          // when the template of a workload that is no Deployment may have changed last
	nodes      []corev1.Node
	others     []corev1.Pod // pods that hold something on nodes
	othersRead bool
	guardLog   []string // terminations in the guard's log
	claims     cluster.Claims
	claimsRead bool     // all of them
	notes      []string // failed reads
}

// claimed lists the pod's claims of GPUs beside its slices.
func (f *facts) claimed(given *promise.Promise) []string {
	return f.claims.GPUClaims(f.Namespace, f.pod).Claimed(given)
}

// gather reads all that is to be known of a pod ("train", "pod/train") or a workload ("deployment/train").
func gather(ctx context.Context, client kubernetes.Interface, namespace, argument string) (*facts, error) {
	kind, name, err := parse(argument)
	if err != nil {
		return nil, err
	}
	g := gatherer{ctx, client, &facts{subject: subject{kind, namespace, name}}}
	if kind == "pod" {
		err = g.pod()
	} else {
		err = g.workload()
	}
	return g.facts, err
}

// parse reads KIND/NAME or NAME.
func parse(argument string) (kind, name string, err error) {
	kind, name, typed := strings.Cut(argument, "/")
	if !typed {
		kind, name = "pod", argument
	}
	kind = strings.ToLower(kind)
	aliases := map[string]string{"po": "pod", "deploy": "deployment", "rs": "replicaset",
		"sts": "statefulset", "ds": "daemonset", "cj": "cronjob"}
	kind = cmp.Or(aliases[kind], strings.TrimSuffix(kind, "s"))
	if name == "" || !slices.Contains(accepted(), kind) {
		return "", "", fmt.Errorf("%q: accepted: POD, or KIND/NAME with one of %s", argument, strings.Join(accepted(), ", "))
	}
	return kind, name, nil
}

func accepted() []string {
	return []string{"pod", "deployment", "replicaset", "statefulset", "daemonset", "job", "cronjob"}
}

type gatherer struct {
	ctx    context.Context
	client kubernetes.Interface
	facts  *facts
}

func (g *gatherer) pod() error {
	f := g.facts
	pod, err := g.client.CoreV1().Pods(f.Namespace).Get(g.ctx, f.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return g.events("", f.Name)
	}
	if err != nil {
		return fmt.Errorf("read pod %s: %w", f.Name, err)
	}
	f.pod, f.found = pod, true
	if err := g.events("Pod", f.Name); err != nil {
		return err
	}
	f.events = slices.DeleteFunc(f.events, func(e corev1.Event) bool { return e.InvolvedObject.UID != pod.UID })
	f.claims, err = installed.Claims(g.ctx, g.client, f.Namespace)
	if f.claimsRead = err == nil; err != nil && len(pod.Spec.ResourceClaims) > 0 {
		g.note("what it claims is not fully known: %v", err)
	}
	if len(failures(pod)) > 0 {
		g.guardLog(pod)
	}
	if pod.Spec.NodeName == "" && pod.Status.Phase == corev1.PodPending {
		g.readNodes()
		g.devices()
	}
	return nil
}

// Bounds on input from the guard's log.
const (
	guardLines = int64(200)
	guardBytes = int64(64 << 10)
)

// guardLog reads terminations in the guard's log. The kubelet records them as Events too, but not for a pod that ended
// with its last container: nothing probes its guard any more.
func (g *gatherer) guardLog(pod *corev1.Pod) {
	if !slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == limits.GuardContainer }) {
		return
	}
	lines, bytes := guardLines, guardBytes
	text, err := g.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: limits.GuardContainer, TailLines: &lines, LimitBytes: &bytes,
	}).DoRaw(g.ctx)
	if err != nil {
		g.note("the guard's log cannot be read, and may tell more: %v", err)
		return
	}
	g.facts.guardLog = guardTerminations(text)
}

// events reads the Events about objects of a name, or of the whole namespace where none is given. kind "": any.
func (g *gatherer) events(kind, name string) error {
	selector := fields.Set{}
	if kind != "" {
		selector["involvedObject.kind"] = kind
	}
	if name != "" {
		selector["involvedObject.name"] = name
	}
	list, err := g.client.CoreV1().Events(g.facts.Namespace).List(g.ctx, metav1.ListOptions{FieldSelector: selector.AsSelector().String()})
	if apierrors.IsForbidden(err) {
		g.note("Events may not be read: %v", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read Events: %w", err)
	}
	g.facts.events = append(g.facts.events, list.Items...)
	return nil
}

// readNodes reads nodes and their pods: objects that a tenant may not read are left out and noted.
func (g *gatherer) readNodes() {
	nodes, err := g.client.CoreV1().Nodes().List(g.ctx, metav1.ListOptions{})
	if err != nil {
		g.note("free replicas are unknown, since nodes may not be read: %v", err)
		return
	}
	g.facts.nodes = nodes.Items
	pods, err := g.client.CoreV1().Pods(metav1.NamespaceAll).List(g.ctx, metav1.ListOptions{
		FieldSelector: "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed",
	})
	if err != nil {
		g.note("free replicas are unknown, since pods of other namespaces may not be read: %v", err)
		return
	}
	g.facts.others, g.facts.othersRead = pods.Items, true
}

// workload reads a workload, those that it made, their pods and Events.
func (g *gatherer) workload() error {
	f := g.facts
	object, err := g.object()
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s %s: %w", f.Kind, f.Name, err)
	}
	f.found, f.atRest = true, map[types.UID]bool{object.GetUID(): atRest(object)}
	if f.Kind == "statefulset" || f.Kind == "daemonset" { // their controllers create pods themselves, of whatever template there is
		f.changed = changedAt(object)
	}
	owners, err := g.family(object.GetUID())
	if err != nil {
		return err
	}
	pods, err := kube.Read[*corev1.Pod](g.ctx, "pods", g.client.CoreV1().Pods(f.Namespace).List, metav1.ListOptions{})
	if err != nil {
		return err
	}
	f.pods = adopt(owners, pods)
	if err := g.events("", ""); err != nil {
		return err
	}
	f.events = slices.DeleteFunc(f.events, func(e corev1.Event) bool { return !owners[e.InvolvedObject.UID] })
	return nil
}

// object is the workload.
func (g *gatherer) object() (metav1.Object, error) {
	f, apps, batch := g.facts, g.client.AppsV1(), g.client.BatchV1()
	switch f.Kind {
	case "deployment":
		return apps.Deployments(f.Namespace).Get(g.ctx, f.Name, metav1.GetOptions{})
	case "replicaset":
		return apps.ReplicaSets(f.Namespace).Get(g.ctx, f.Name, metav1.GetOptions{})
	case "statefulset":
		return apps.StatefulSets(f.Namespace).Get(g.ctx, f.Name, metav1.GetOptions{})
	case "daemonset":
		return apps.DaemonSets(f.Namespace).Get(g.ctx, f.Name, metav1.GetOptions{})
	case "cronjob":
		return batch.CronJobs(f.Namespace).Get(g.ctx, f.Name, metav1.GetOptions{})
	}
	return batch.Jobs(f.Namespace).Get(g.ctx, f.Name, metav1.GetOptions{})
}

// changedAt is when something but the status of an object was written last.
func changedAt(object metav1.Object) (at time.Time) {
	for _, m := range object.GetManagedFields() {
		if m.Subresource == "" && m.Time != nil && m.Time.After(at) {
			at = m.Time.Time
		}
	}
	return at
}

// family is the workload and those that it made to make pods: a Deployment's ReplicaSets, a CronJob's Jobs.
func (g *gatherer) family(uid types.UID) (map[types.UID]bool, error) {
	f, owners := g.facts, map[types.UID]bool{uid: true}
	switch f.Kind {
	case "deployment":
		sets, err := kube.Read[*appsv1.ReplicaSet](g.ctx, "ReplicaSets", g.client.AppsV1().ReplicaSets(f.Namespace).List, metav1.ListOptions{})
		adopt(owners, sets)
		f.outdated = outdated(sets, owners)
		for _, r := range sets {
			f.atRest[r.UID] = atRest(r)
		}
		return owners, err
	case "cronjob":
		jobs, err := kube.Read[*batchv1.Job](g.ctx, "Jobs", g.client.BatchV1().Jobs(f.Namespace).List, metav1.ListOptions{})
		adopt(owners, jobs)
		for _, j := range jobs {
			f.atRest[j.UID] = atRest(j)
		}
		return owners, err
	}
	return owners, nil
}

// adopt adds to owners the objects that one of them controls.
func adopt[T metav1.Object](owners map[types.UID]bool, objects []T) (adopted []T) {
	for _, o := range objects {
		if owner := metav1.GetControllerOf(o); owner != nil && owners[owner.UID] {
			owners[o.GetUID()] = true
			adopted = append(adopted, o)
		}
	}
	return adopted
}

// outdated are the ReplicaSets of owners but the one of the latest revision.
func outdated(all []*appsv1.ReplicaSet, owners map[types.UID]bool) map[types.UID]bool {
	out, latest, current := map[types.UID]bool{}, -1, types.UID("")
	for _, r := range all {
		if !owners[r.UID] {
			continue
		}
		out[r.UID] = true
		if revision, err := strconv.Atoi(r.Annotations[revisionAnnotation]); err == nil && revision > latest {
			latest, current = revision, r.UID
		}
	}
	if latest < 0 { // they cannot be distinguished
		return nil
	}
	delete(out, current)
	return out
}

// revisionAnnotation counts a Deployment's templates on their ReplicaSets.
const revisionAnnotation = "deployment.kubernetes.io/revision"

func (g *gatherer) note(format string, args ...any) {
	g.facts.notes = append(g.facts.notes, fmt.Sprintf(format, args...))
}
