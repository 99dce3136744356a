package nodecondition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/go-logr/logr/testr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/guard/lease"
	"github.com/gpuslice/gpuslice/webhook/leader/nodelease"
)

const system = "gpuslice-system"

// lab is a Writer on a cluster in memory, in a bubble of synctest.
type lab struct {
	*testing.T
	client  *fake.Clientset
	log     logr.Logger
	late    time.Duration // until Leases are read
	writing func()        // starts a leader's work
	stop    func()
}

func newLab(t *testing.T, nodes int) *lab {
	client := fake.NewClientset()
	for i := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("gpu-", i)}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	l := &lab{T: t, client: client, log: testr.New(t)}
	l.writing = func() {
		agents, err := nodelease.Follow(client, system)
		if err != nil {
			t.Fatal(err)
		}
		w := &Writer{Client: client, Nodes: coreinformers.NewNodeInformer(client, 0, cache.Indexers{}), Agents: agents, Log: l.log}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { w.Nodes.RunWithContext(ctx) })
		running.Go(func() { time.Sleep(l.late); agents.Run(ctx) })
		running.Go(func() { _ = w.Run(ctx) })
		l.stop = func() { cancel(); running.Wait() }
	}
	return l
}

// renew has the agents of all nodes renew their Leases for so long.
func (l *lab) renew(d time.Duration, nodes int, r lease.Report) {
	l.Helper()
	leases := l.client.CoordinationV1().Leases(system)
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Second) {
		for i := range nodes {
			node := fmt.Sprint("gpu-", i)
			object := &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: lease.Name(node), Labels: lease.Labels(), Annotations: r.Annotations()},
				Spec:       coordinationv1.LeaseSpec{HolderIdentity: &node, RenewTime: &metav1.MicroTime{Time: time.Now()}},
			}
			_, err := leases.Update(l.Context(), object, metav1.UpdateOptions{})
			if err != nil {
				_, err = leases.Create(l.Context(), object, metav1.CreateOptions{})
			}
			if err != nil {
				l.Fatal(err)
			}
		}
	}
	synctest.Wait()
}

// condition returns that of a node; nil: it has none.
func (l *lab) condition(name string) *corev1.NodeCondition {
	l.Helper()
	node, err := l.client.CoreV1().Nodes().Get(l.Context(), name, metav1.GetOptions{})
	if err != nil {
		l.Fatal(err)
	}
	if !slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady }) {
		l.Errorf("the kubelet's condition is lost: %v", node.Status.Conditions)
	}
	for _, c := range node.Status.Conditions {
		if c.Type == Type {
			return &c
		}
	}
	return nil
}

// writes counts the writes to nodes since the last call.
func (l *lab) writes() (n int) {
	for _, a := range l.client.Actions() {
		if a.GetVerb() == "patch" && a.GetResource().Resource == "nodes" {
			if a.GetSubresource() != "status" {
				l.Errorf("written: %v", a.(clienttesting.PatchAction).GetSubresource())
			}
			n++
		}
	}
	l.client.ClearActions()
	return n
}

func (l *lab) expect(at, reason string, writes int) {
	l.Helper()
	have, status := l.condition("gpu-0"), corev1.ConditionFalse
	if reason == ReasonEnforcing {
		status = corev1.ConditionTrue
	}
	if have == nil || have.Reason != reason || have.Status != status {
		l.Errorf("%s: condition %+v, want %s", at, have, reason)
	}
	if n := l.writes(); n != writes {
		l.Errorf("%s: %d writes, want %d", at, n, writes)
	}
}

func TestCondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 2)
		l.writing()
		l.renew(time.Minute, 1, lease.Report{})
		l.expect("while the agent enforces", ReasonEnforcing, 1)
		since := l.condition("gpu-0").LastTransitionTime
		l.renew(10*time.Minute, 1, lease.Report{Used: map[string]int64{"u": 1}})
		l.expect("and goes on", ReasonEnforcing, 0)
		l.renew(time.Minute, 1, lease.Report{NotEnforced: map[string]string{"u-1": "gpu0: it is lost", "u-0": "a"}})
		l.expect("but not for all pods", ReasonNotEnforced, 1)
		if c := l.condition("gpu-0"); !strings.Contains(c.Message, "2 pods") ||
			!strings.HasSuffix(c.Message, "because: a") || !since.Before(&c.LastTransitionTime) {
			t.Errorf("condition %+v, was True since %s", c, since)
		}
		time.Sleep(lease.Duration + 10*time.Second)
		synctest.Wait()
		l.expect("once it is away", ReasonAway, 1)
		l.stop()
		l.writing()
		time.Sleep(2 * lease.Duration)
		synctest.Wait()
		l.expect("away, with another leader", ReasonAway, 0)
		l.renew(time.Minute, 1, lease.Report{})
		l.expect("once it is back", ReasonEnforcing, 1)
		if l.condition("gpu-1") != nil {
			t.Error("a node without an agent has the condition")
		}
		if err := l.client.CoordinationV1().Leases(system).Delete(t.Context(), lease.Name("gpu-0"), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * syncPeriod)
		synctest.Wait()
		if c := l.condition("gpu-0"); c != nil {
			t.Errorf("without a Lease: %+v", c)
		}
		l.stop()
	})
}

// TestBounds: neither an agent that reports something else each time nor the loss of all agents makes many writes.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes = writesPerSync + 10
		l := newLab(t, nodes)
		l.writing()
		l.renew(lease.Duration+syncPeriod, nodes, lease.Report{})
		if n := l.writes(); n != nodes {
			t.Errorf("%d writes at first, want one for each node", n)
		}
		const minutes = 2
		for i := range 6 * minutes {
			l.renew(10*time.Second, 1, lease.Report{NotEnforced: map[string]string{"u": fmt.Sprint(i, strings.Repeat("ä", 1000))}})
		}
		if n := l.writes(); n < minutes || n > nodes+2*minutes+1 {
			t.Errorf("%d writes in %d minutes, in which one agent flaps and %d are lost", n, minutes, nodes-1)
		}
		if c := l.condition("gpu-0"); len(c.Message) > maxMessage || !utf8.ValidString(c.Message) {
			t.Errorf("a message of %d bytes: %q", len(c.Message), c.Message)
		}
		l.stop()
	})
}

// TestLateLeases: a new leader that reads the Leases late takes no agent that is away for one that enforces.
func TestLateLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 1)
		l.renew(time.Second, 1, lease.Report{})
		l.late = 20 * time.Second
		l.writing()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		l.expect("of an agent that was away before", ReasonAway, 1)
		l.stop()
	})
}

// TestFailedWrites: while no node can be written, the leader tries one in each sync, and logs once.
func TestFailedWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes = 20
		l := newLab(t, nodes)
		logged := 0
		l.log = funcr.New(func(_, args string) { logged++ }, funcr.Options{})
		denied := true
		l.client.PrependReactor("patch", "nodes",
			func(clienttesting.Action) (bool, runtime.Object, error) { return denied, nil, errors.New("denied") })
		l.writing()
		l.renew(lease.Duration+10*syncPeriod, nodes, lease.Report{})
		if n := l.writes(); n < 2 || n > 11 || logged != 1 {
			t.Errorf("%d writes and %d logged in 10 syncs", n, logged)
		}
		denied = false
		l.renew(2*syncPeriod, nodes, lease.Report{})
		if n := l.writes(); n != nodes {
			t.Errorf("%d writes once they pass, want %d", n, nodes)
		}
		l.stop()
	})
}
