package load

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/scenarios"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// denying is the label of namespaces in which another webhook denies pods.
const denying = "example.com/denies"

// lab is three replicas on an API server with a controller manager.
type lab struct {
	*install.Installation
	t        *testing.T
	road     *slowRoad
	strategy string // of all policies

	mu     sync.Mutex
	random *rand.Rand
	away   map[int]bool // replicas that the API server is not to ask
}

func newLab(t *testing.T) *lab {
	t.Helper()
	server := cluster.ForTest(t, cluster.Options{ControllerManager: true})
	dir := t.TempDir()
	binary, err := install.Binary(t.Context(), dir, "cmd/webhook")
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, strategy: "time-slicing", away: map[int]bool{}, random: rand.New(rand.NewPCG(7, 7))}
	l.road = &slowRoad{chance: l.chance, upTo: l.upTo}
	l.Installation, err = install.NewWith(t.Context(), server, binary, dir, install.Options{Replicas: 3, Through: l.road.through(t, server)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Stop)
	nodes, err := scenarios.Nodes("l4-timeslicing-renamed")
	if err == nil {
		err = l.Nodes(t.Context(), nodes...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lab) float() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.random.Float64()
}

func (l *lab) chance(p float64) bool { return l.float() < p }

func (l *lab) upTo(d time.Duration) time.Duration { return time.Duration(l.float() * float64(d)) }

// govern makes the tenants' namespaces, each with its quota.
func (l *lab) govern(tenants []*tenant, labels map[string]string) {
	l.t.Helper()
	for _, t := range tenants {
		if err := l.Server.Namespace(l.t.Context(), t.namespace, labels); err != nil {
			l.t.Fatal(err)
		}
		document := fmt.Sprintf("apiVersion: gpuslice.dev/v1\nstrategies: [%s]\nnamespaces: {names: [%s]}\nquota: {slices: %d}\n",
			l.strategy, t.namespace, t.limit)
		if err := l.Policy(l.t.Context(), t.namespace, []byte(document)); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := l.Settle(l.t.Context()); err != nil {
		l.t.Fatal(err)
	}
}

// TestQuota creates a thousand pods with 100 and with 300 in flight: as many as the limit allows are let in, whatever it is. A few
// may be answered to try again: a replica that loses every race to write the ledger for seconds gives up.
func TestQuota(t *testing.T) {
	t.Run("is filled exactly", func(t *testing.T) {
		l := newLab(t)
		seen, err := count(t.Context(), l.Server.Client)
		if err != nil {
			t.Fatal(err)
		}
		const creates = 1000
		seed := uint64(100)
		for _, flight := range []int{100, 300} {
			for _, limit := range []int{50, creates} {
				seed++
				tenants := []*tenant{newTenant(l.Server.Client, seed, limit)}
				l.govern(tenants, nil)
				begin := time.Now()
				crowd(t.Context(), tenants[0], creates, flight)
				took := time.Since(begin)
				_, most := seen.of(tenants[0].namespace)
				t.Logf("%d in flight, limit %d: %v in %s, at most %d lived at once", flight, limit, tenants[0].told, took.Round(time.Millisecond), most)
				if tenants[0].told["created"] != limit || most > limit || tenants[0].told["failed"] > 0 || tenants[0].told["busy"] > creates/20 {
					t.Errorf("%d in flight: %d were created of %d, %v, at most %d at once", flight,
						tenants[0].told["created"], limit, tenants[0].told, most)
				}
			}
		}
	})
}

// crowd creates n pods under names of their own, so many at once.
func crowd(ctx context.Context, t *tenant, n, flight int) {
	jobs := make(chan int)
	var workers sync.WaitGroup
	for range flight {
		workers.Go(func() {
			for k := range jobs {
				t.create(ctx, fmt.Sprintf("pod-%d", k))
			}
		})
	}
	for k := range n {
		jobs <- k
	}
	close(jobs)
	workers.Wait()
}

// create creates a pod, again after the pause that a busy answer names.
func (t *tenant) create(ctx context.Context, name string) {
	for {
		_, err := t.client.CoreV1().Pods(t.namespace).Create(ctx, slice(name), metav1.CreateOptions{})
		what := verdict(err)
		t.tell(what)
		if what != "busy" {
			return
		}
		seconds, _ := apierrors.SuggestsClientDelay(err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(max(seconds, 1)) * time.Second):
		}
	}
}

const (
	seeds   = 24
	each    = 100 // creates of a seed
	flight  = 12  // of a seed at once
	allowed = 6   // slices of a seed
)

// TestQuotaUnderFaults runs all seeds side by side, in all of the trouble at once.
func TestQuotaUnderFaults(t *testing.T) {
	t.Run("is neither exceeded nor lost", func(t *testing.T) {
		l := newLab(t)
		var tenants []*tenant
		for seed := range uint64(seeds) {
			tenants = append(tenants, newTenant(l.Server.Client, seed, allowed))
		}
		denySome(t, l.Server, denying)
		l.govern(tenants, map[string]string{denying: "yes"})
		for _, one := range tenants[:seeds/4] { // and a quota of Kubernetes' own that is smaller than ours
			l.nativeQuota(one.namespace, allowed-2)
		}
		seen, err := count(t.Context(), l.Server.Client)
		if err != nil {
			t.Fatal(err)
		}

		trouble, calm := context.WithCancel(t.Context())
		var troubles, working sync.WaitGroup
		l.road.slow.Store(true)
		for _, fault := range []func(context.Context){l.killReplicas, l.pauseReplica, l.stopEtcd} {
			troubles.Go(func() { fault(trouble) })
		}
		begin := time.Now()
		for _, one := range tenants {
			working.Go(func() { one.work(t.Context(), each, flight) })
		}
		working.Wait()
		calm()
		troubles.Wait()
		l.road.slow.Store(false)
		t.Logf("%d seeds of %d creates, %d at once, in %s; %d calls to the API server were delayed", seeds, each, seeds*flight,
			time.Since(begin).Round(time.Second), l.road.delayed.Load())
		l.alive()
		l.judge(tenants, seen)
		l.fill(tenants, seen)
	})
}

// nativeQuota writes a ResourceQuota on the namespace's pods.
func (l *lab) nativeQuota(namespace string, pods int) {
	l.t.Helper()
	_, err := l.Server.Client.CoreV1().ResourceQuotas(namespace).Create(l.t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "pods"},
		Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(int64(pods), resource.DecimalSI)},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		l.t.Fatal(err)
	}
}

// killReplicas kills the second or third replica every two seconds, and starts it again.
func (l *lab) killReplicas(ctx context.Context) {
	for ctx.Err() == nil {
		pause(ctx, 2*time.Second)
		k := 1 + int(l.float()*2)
		l.Replicas[k].Kill()
		l.serve(k, false) // as a node's kubelet and the endpoint controller would, some seconds later
		if err := l.Again(context.WithoutCancel(ctx), k); err != nil {
			l.t.Error(err)
			return
		}
		l.serve(k, true)
	}
}

// pauseReplica stops the first replica for half a minute, and lets it go on with what it was about to do.
func (l *lab) pauseReplica(ctx context.Context) {
	for ctx.Err() == nil {
		pause(ctx, 5*time.Second)
		resume := l.Webhook.Pause()
		pause(ctx, 5*time.Second) // its probe has to fail first
		l.serve(0, false)
		pause(ctx, 25*time.Second)
		resume()
		l.serve(0, true)
	}
}

// serve says whether the API server is to ask a replica.
func (l *lab) serve(replica int, yes bool) {
	l.mu.Lock()
	l.away[replica] = !yes
	var backends []string
	for k, p := range l.Replicas {
		if !l.away[k] {
			backends = append(backends, p.Reviews)
		}
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.t.Context()), 10*time.Second)
	defer cancel()
	_ = l.Server.SetEndpoints(ctx, api.SystemNamespace, "gpuslice-webhook", backends...) // the API server may be away itself
}

// stopEtcd stops etcd for five seconds, and then restarts the API server.
func (l *lab) stopEtcd(ctx context.Context) {
	pause(ctx, 8*time.Second)
	resume, err := l.Server.Pause("etcd")
	if err != nil {
		l.t.Error(err)
		return
	}
	pause(ctx, 5*time.Second)
	resume()
	pause(ctx, 10*time.Second)
	restarting, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := l.Server.Restart(restarting); err != nil {
		l.t.Error(err)
	}
}

// alive makes sure that three replicas run to the end.
func (l *lab) alive() {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
	defer cancel()
	l.serve(0, true)
	if err := l.Settle(ctx); err != nil {
		l.t.Fatal(err)
	}
}

// settleWithin is how long after the last create the ledgers may be wrong: reservations expire after a minute, and the
// next pass comes ten seconds later at the latest; the rest is for a machine with two cores.
const settleWithin = ledger.ReservationTTL + 30*time.Second

// judge waits once for all ledgers, and holds them against what lives.
func (l *lab) judge(tenants []*tenant, seen *census) {
	l.t.Helper()
	begin, wrong := time.Now(), map[string]string{}
	for {
		clear(wrong)
		for _, t := range tenants {
			if why := l.differs(t, seen); why != "" {
				wrong[t.namespace] = why
			}
		}
		if len(wrong) == 0 || time.Since(begin) > settleWithin {
			break
		}
		pause(l.t.Context(), time.Second)
	}
	for _, namespace := range slices.Sorted(maps.Keys(wrong)) {
		l.t.Errorf("%s: %s after the last create, %s", namespace, time.Since(begin).Round(time.Second), wrong[namespace])
	}
	total := map[string]int{}
	for _, t := range tenants {
		for what, n := range t.told {
			total[what] += n
		}
	}
	l.t.Logf("%v; ledgers and pods agreed after %s", total, time.Since(begin).Round(time.Second))
	for _, what := range []string{"created", "exceeded", "denied by others", "name taken"} {
		if total[what] == 0 {
			l.t.Errorf("the load never met %q: %v", what, total)
		}
	}
}

// fill makes others stop denying, and creates pods until every quota is used up: the trouble has cost no slice, and no quota lets
// one in more, then or before.
func (l *lab) fill(tenants []*tenant, seen *census) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), settleWithin)
	defer cancel()
	if err := l.Server.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx,
		"denies", metav1.DeleteOptions{}); err != nil {
		l.t.Fatal(err)
	}
	var filling sync.WaitGroup
	for _, one := range tenants {
		filling.Go(func() {
			if err := one.fill(ctx, seen); err != nil {
				l.t.Error(err)
			}
		})
	}
	filling.Wait()
	for _, one := range tenants {
		if _, most := seen.of(one.namespace); most != one.limit {
			l.t.Errorf("%s: %d lived at once, the limit is %d", one.namespace, most, one.limit)
		}
	}
}

// differs says how a tenant's ledger differs from the pods that live.
func (l *lab) differs(t *tenant, seen *census) string {
	name := ledger.ObjectName(config.QuotaSpec{}.BudgetKey(t.namespace))
	object, err := ledger.ClusterStore{Client: l.Server.Client, Namespace: api.SystemNamespace}.Get(l.t.Context(), name)
	if err != nil {
		return err.Error()
	}
	_, state, err := ledger.Decode(object.Data)
	if err != nil {
		return err.Error()
	}
	live, _ := seen.of(t.namespace)
	var base int64
	for _, h := range state.Base {
		base += h.Charge.Slices
	}
	if len(state.Reservations) > 0 || base != int64(live) {
		return fmt.Sprintf("the ledger has %d slices and %d reservations, %d slices live", base, len(state.Reservations), live)
	}
	return ""
}
