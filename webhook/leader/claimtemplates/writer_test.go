package claimtemplates

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/claims"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/webhook/governed"
	"github.com/gpuslice/gpuslice/webhook/leader/podcache"
)

// pod is one with a slice that names the templates.
func pod(namespace, name string, names ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "-" + name),
		Labels: map[string]string{api.LabelTier: "guard"}}}
	for i, n := range names {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprint("c", i), ResourceClaimTemplateName: &n})
	}
	return p
}

// templateOf is what the name stands for.
func templateOf(namespace, name string) *resourcev1.ResourceClaimTemplate {
	t := claims.Named(pod(namespace, "p", name))[0]
	t.UID, t.ResourceVersion = "u-"+types.UID(name), "7"
	return t
}

// lying is a template that asks for all devices.
func lying(namespace, name string) *resourcev1.ResourceClaimTemplate {
	t := templateOf(namespace, name)
	all := t.Spec.Spec.Devices.Requests[0].Exactly
	all.AllocationMode, all.Count, t.Labels = resourcev1.DeviceAllocationModeAll, 0, nil
	return t
}

// stage runs a Writer over a fake cluster.
type stage struct {
	*fake.Clientset
	t        *testing.T
	governed []governed.Namespace
	looks    atomic.Int64 // at what is governed: one a sync
	stop     func()
}

// under is so many namespaces whose policy allows the strategy.
func under(strategy api.StrategyName, namespaces ...string) (out []governed.Namespace) {
	for _, namespace := range namespaces {
		out = append(out, governed.Namespace{Name: namespace, Policy: &config.Policy{Strategies: []api.StrategyName{strategy}}})
	}
	return out
}

func start(t *testing.T, over []governed.Namespace, objects ...runtime.Object) *stage {
	s := &stage{Clientset: fake.NewClientset(objects...), t: t, governed: over}
	s.run()
	return s
}

// react makes the fake cluster answer calls for templates by f from now on. It takes the cluster's lock: a running Writer calls it.
func (s *stage) react(verb string, f clienttesting.ReactionFunc) {
	s.Lock()
	defer s.Unlock()
	s.PrependReactor(verb, "resourceclaimtemplates", f)
}

func (s *stage) run() {
	templates := resourceinformers.NewResourceClaimTemplateInformer(s, metav1.NamespaceAll, 0, cache.Indexers{})
	w := New(Options{Client: s, Templates: templates, Governed: func() ([]governed.Namespace, error) {
		s.looks.Add(1)
		if s.governed == nil {
			return nil, errors.New("not read yet")
		}
		return s.governed, nil
	}, Log: logr.Discard()})
	ctx, cancel := context.WithCancel(s.t.Context())
	pods := podcache.NewInformer(podcache.Options{Client: s, Templates: NamedBy})
	done := make(chan error, 3)
	go func() { pods.RunWithContext(ctx); done <- nil }()
	go func() { templates.RunWithContext(ctx); done <- nil }()
	go func() { done <- w.Run(ctx, pods) }()
	s.stop = func() {
		cancel()
		if err := errors.Join(<-done, <-done, <-done); err != nil {
			s.t.Error(err)
		}
		synctest.Wait()
	}
	s.pass(10 * time.Second)
}

// pass lets the test's own clock run.
func (s *stage) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (s *stage) create(pods ...*corev1.Pod) {
	for _, p := range pods {
		if _, err := s.CoreV1().Pods(p.Namespace).Create(s.t.Context(), p, metav1.CreateOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *stage) deletePod(namespace, name string) {
	if err := s.CoreV1().Pods(namespace).Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) endPod(namespace, name string) {
	p, err := s.CoreV1().Pods(namespace).Get(s.t.Context(), name, metav1.GetOptions{})
	if err == nil {
		p.Status.Phase = corev1.PodSucceeded
		_, err = s.CoreV1().Pods(namespace).UpdateStatus(s.t.Context(), p, metav1.UpdateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// have are the templates of the cluster, those marked that are not what their names say.
func (s *stage) have() (names []string) {
	list, err := s.ResourceV1().ResourceClaimTemplates(metav1.NamespaceAll).List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, t := range list.Items {
		name := t.Namespace + "/" + t.Name
		if t.Spec.Spec.Devices.Requests[0].Exactly.AllocationMode == resourcev1.DeviceAllocationModeAll {
			name += " lies"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s *stage) reasons() (reasons []string) {
	list, err := s.CoreV1().Events(metav1.NamespaceAll).List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range list.Items {
		reasons = append(reasons, e.Reason)
	}
	return reasons
}

func (s *stage) want(names ...string) {
	s.t.Helper()
	if diff := cmp.Diff(names, s.have()); diff != "" {
		s.t.Errorf("templates (-want +got)\n%s", diff)
	}
}

const four = "gpuslice-4396mi"

func TestWriter(t *testing.T) {
	ended := pod("team-a", "ended", four)
	ended.Status.Phase = corev1.PodSucceeded
	for name, c := range map[string]struct {
		governed []governed.Namespace
		have     []runtime.Object
		want     []string
		reasons  []string
	}{
		"a template is written": {under("claim", "team-a"), []runtime.Object{pod("team-a", "p", four)},
			[]string{"team-a/" + four}, nil},
		"one for all pods of a namespace": {under("claim", "team-a", "team-b"),
			[]runtime.Object{pod("team-a", "p", four), pod("team-a", "q", four), pod("team-b", "r", four)},
			[]string{"team-a/" + four, "team-b/" + four}, nil},
		"two of a pod": {under("claim", "team-a"), []runtime.Object{pod("team-a", "p", four, "gpuslice-1mi")},
			[]string{"team-a/gpuslice-1mi", "team-a/" + four}, nil},
		"one that is there is left": {under("claim", "team-a"),
			[]runtime.Object{templateOf("team-a", four), pod("team-a", "p", four)}, []string{"team-a/" + four}, nil},
		"one that lies is written anew": {under("claim", "team-a"), []runtime.Object{lying("team-a", four), pod("team-a", "p", four)},
			[]string{"team-a/" + four}, []string{ReasonReplaced}},
		"one that lies and nobody names is left": {under("claim", "team-a"), []runtime.Object{lying("team-a", four)},
			[]string{"team-a/" + four + " lies"}, nil},
		"a name of the author's": {under("claim", "team-a"),
			[]runtime.Object{pod("team-a", "p", "mine", "gpuslice-4Gi")}, nil, nil},
		"a pod that has ended":             {under("claim", "team-a"), []runtime.Object{ended}, nil, nil},
		"a namespace that is not governed": {under("claim", "team-a"), []runtime.Object{pod("team-b", "p", four)}, nil, nil},
		"no policy allows claims any more": {under("mig", "team-a"), []runtime.Object{pod("team-a", "p", four)},
			[]string{"team-a/" + four}, nil},
		"no policy allows claims, nor a pod has": {under("mig", "team-a"),
			[]runtime.Object{pod("team-a", "p"), pod("team-a", "q", "mine")}, nil, nil},
		"what is governed is not known": {nil, []runtime.Object{pod("team-a", "p", four)}, nil, nil},
		"one namespace's policy cannot be read": {append(under("claim", "team-a"), governed.Namespace{Name: "team-b"}),
			[]runtime.Object{pod("team-b", "p", four)}, []string{"team-b/" + four}, nil},
		"a namespace whose policy allows another": {append(under("claim", "team-a"), under("mig", "team-b")...),
			[]runtime.Object{pod("team-b", "p", four)}, []string{"team-b/" + four}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, c.governed, c.have...)
				s.want(c.want...)
				if diff := cmp.Diff(c.reasons, s.reasons()); diff != "" {
					t.Errorf("Events (-want +got)\n%s", diff)
				}
				s.stop()
			})
		})
	}
}

// TestWriterFollows creates pods while it runs: their templates are there at once, and stay an hour after the last of them has gone or
// ended.
func TestWriterFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, under("claim", "team-a"))
		s.create(pod("team-a", "p", four), pod("team-a", "q", four))
		s.pass(time.Second)
		s.want("team-a/" + four)
		s.deletePod("team-a", "p")
		s.pass(2 * time.Hour)
		s.want("team-a/" + four)
		s.deletePod("team-a", "q")
		s.pass(50 * time.Minute)
		s.want("team-a/" + four)
		s.create(pod("team-a", "r", four))
		s.pass(5 * time.Minute)
		s.endPod("team-a", "r")
		s.pass(58 * time.Minute)
		s.want("team-a/" + four)
		s.pass(5 * time.Minute)
		s.want()
		s.stop()
	})
}

// TestWriterWritesAgain has a tenant delete a template that pods name, or put another in its place: the next pod gets its own.
func TestWriterWritesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, under("claim", "team-a"), pod("team-a", "p", four))
		s.want("team-a/" + four)
		templates := s.ResourceV1().ResourceClaimTemplates("team-a")
		for _, other := range []*resourcev1.ResourceClaimTemplate{nil, lying("team-a", four)} {
			if err := templates.Delete(t.Context(), four, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if other != nil {
				if _, err := templates.Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			looks := s.looks.Load()
			s.create(pod("team-a", fmt.Sprint("q", looks), four))
			s.pass(2 * settle)
			s.want("team-a/" + four)
			if s.looks.Load() == looks {
				t.Error("the pod woke nobody")
			}
		}
		s.stop()
	})
}

// TestWriterRests has more pods come whose template is there: nothing is done for them.
func TestWriterRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, under("claim", "team-a"), pod("team-a", "p", four))
		looks := s.looks.Load()
		for i := range 20 {
			s.create(pod("team-a", fmt.Sprint("q", i), four))
			s.pass(time.Second)
		}
		if n := s.looks.Load() - looks; n > 0 {
			t.Errorf("%d syncs", n)
		}
		s.create(pod("team-a", "r", "gpuslice-1mi"))
		s.pass(time.Second)
		s.want("team-a/gpuslice-1mi", "team-a/"+four)
		s.stop()
	})
}

// TestWriterReplaced has another replica lead between a pod and its template.
func TestWriterReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, under("claim", "team-a"))
		s.stop()
		s.create(pod("team-a", "p", four))
		s.pass(time.Minute)
		s.want()
		s.run()
		s.want("team-a/" + four)
		s.stop()
	})
}

// TestWriterLeavesOthers has templates that gpuslice did not write: they are not removed.
func TestWriterLeavesOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unlabeled, named := templateOf("team-a", four), templateOf("team-a", four)
		unlabeled.Labels, named.Name = nil, "mine"
		s := start(t, under("claim", "team-a"), unlabeled, named)
		s.pass(3 * time.Hour)
		s.want("team-a/"+four, "team-a/mine")
		s.stop()
	})
}

// TestWriterKeepsWhatIsNamed: a pod that lives on where no policy allows claims any more may need its template again.
func TestWriterKeepsWhatIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, under("mig", "team-a"), templateOf("team-b", four), pod("team-b", "p", four), templateOf("team-c", four))
		s.pass(3 * time.Hour)
		s.want("team-b/" + four) // and that of team-c, which nobody names, is removed
		s.stop()
	})
}

// TestWriterAfterTheLastPolicy has another replica lead when the strategy leaves the last policy: it writes what pods name that come
// later, admitted by a replica that had not read the policy.
func TestWriterAfterTheLastPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, under("claim", "team-a"))
		s.stop()
		s.governed = under("mig", "team-a")
		s.run()
		s.create(pod("team-a", "late", four))
		s.pass(2 * time.Minute)
		s.want("team-a/" + four)
		s.stop()
	})
}

// TestWriterCrowd has a namespace name thousands of sizes: others do not wait, and it gets a bounded number, and more when pods go.
func TestWriterCrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var objects []runtime.Object
		for i := range 600 {
			objects = append(objects, pod("crowd", fmt.Sprint("p", i), fmt.Sprintf("gpuslice-%dmi", 1000+i)))
		}
		s := start(t, under("claim", "crowd", "team-a"), append(objects, pod("team-a", "p", four))...)
		s.pass(time.Minute)
		count := func() map[string]int {
			out := map[string]int{}
			for _, name := range s.have() {
				out[name[:strings.Index(name, "/")]]++
			}
			return out
		}
		if got := count(); !maps.Equal(got, map[string]int{"crowd": MaxTemplates, "team-a": 1}) {
			t.Errorf("templates %v", got)
		}
		if got := s.reasons(); len(got) != 1 || got[0] != ReasonTooMany {
			t.Errorf("Events %v", got)
		}
		at := slices.IndexFunc(s.Actions(), func(a clienttesting.Action) bool { return a.GetVerb() == "create" && a.GetNamespace() == "team-a" })
		writes := 0
		for _, a := range s.Actions()[:at] {
			if a.GetVerb() == "create" {
				writes++
			}
		}
		if writes > 2 {
			t.Errorf("team-a had to wait for %d writes of others", writes)
		}
		for i := range 600 {
			if i%2 == 0 {
				s.deletePod("crowd", fmt.Sprint("p", i))
				synctest.Wait() // the fake watch holds a hundred changes
			}
		}
		s.pass(10 * time.Minute)
		for _, name := range s.have() {
			var size int
			if n, _ := fmt.Sscanf(name, "crowd/gpuslice-%dmi", &size); n == 1 && size%2 == 0 {
				t.Fatalf("%s keeps its place, though no pod names it and others wait", name)
			}
		}
		s.stop()
	})
}

// TestWriterBacksOff has a namespace in which every write fails: it is asked ever more rarely, and others not at all less.
func TestWriterBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, under("claim", "full", "team-a"))
		failed := 0
		s.react("create", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if a.GetNamespace() == "full" {
				failed++
				return true, nil, errors.New("exceeded quota")
			}
			return false, nil, nil
		})
		for i := range 60 {
			s.create(pod("full", fmt.Sprint("p", i), fmt.Sprintf("gpuslice-%dmi", 1+i)),
				pod("team-a", fmt.Sprint("p", i), fmt.Sprintf("gpuslice-%dmi", 1+i)))
			s.pass(time.Second)
			if got := len(s.have()); got != i+1 {
				t.Fatalf("after %d pods team-a has %d templates", i+1, got)
			}
		}
		if failed < 3 || failed > 8 {
			t.Errorf("%d calls in a minute", failed)
		}
		s.stop()
	})
}

// TestWriterForgets has the pod go whose template could not be written: nothing is left to do, and the writer comes to rest.
func TestWriterForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, under("claim", "team-a"))
		s.react("create", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("namespace is terminating")
		})
		s.create(pod("team-a", "p", four))
		s.pass(5 * time.Second)
		s.deletePod("team-a", "p")
		s.pass(10 * time.Minute)
		before := s.looks.Load()
		s.pass(10 * time.Minute)
		if n := s.looks.Load() - before; n > 11 {
			t.Errorf("%d syncs in ten minutes without a pod", n)
		}
		s.stop()
	})
}

// TestWriterPassesWhatStays has templates that cannot be removed: one that has but the label of gpuslice's is left alone, and of
// neither does a pod wait.
func TestWriterPassesWhatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := templateOf("team-a", four)
		notes.Name = "gpuslice-notes"
		s := start(t, under("claim", "team-a"), notes, templateOf("team-a", four))
		var removed []string
		s.react("delete", func(a clienttesting.Action) (bool, runtime.Object, error) {
			removed = append(removed, a.(clienttesting.DeleteAction).GetName())
			return true, nil, errors.New("denied")
		})
		s.pass(3 * time.Hour)
		if len(removed) == 0 || slices.Contains(removed, notes.Name) {
			t.Errorf("tried to remove %q", removed)
		}
		s.create(pod("team-a", "p", "gpuslice-8492mi"))
		s.pass(time.Second)
		s.want("team-a/"+four, "team-a/gpuslice-8492mi", "team-a/gpuslice-notes")
		s.stop()
	})
}

// TestWriterKeptByFinalizer has a template that lies and stays although it was deleted: nothing was written anew, and no Event says so.
func TestWriterKeptByFinalizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, under("claim", "team-a"), lying("team-a", four))
		deleted := 0
		s.react("delete", func(clienttesting.Action) (bool, runtime.Object, error) {
			deleted++
			return true, nil, nil
		})
		s.create(pod("team-a", "p", four))
		s.pass(time.Minute)
		s.want("team-a/" + four + " lies")
		if got := s.reasons(); len(got) > 0 || deleted < 3 || deleted > 8 {
			t.Errorf("Events %q, deleted %d times in a minute", got, deleted)
		}
		s.stop()
	})
}
