package claimtemplates

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// lagging is a stage on which templates are seen a while after pods are.
func lagging(t *testing.T, lag time.Duration, objects ...runtime.Object) *stage {
	s := &stage{Clientset: fake.NewClientset(objects...), t: t, governed: under("claim", "team-a")}
	s.PrependWatchReactor("resourceclaimtemplates", func(a clienttesting.Action) (bool, watch.Interface, error) {
		w, err := s.Tracker().Watch(resourcev1.SchemeGroupVersion.WithResource("resourceclaimtemplates"), a.GetNamespace())
		if err != nil {
			return true, nil, err
		}
		late := lateWatch{watch.NewRaceFreeFake(), w}
		go func() {
			for e := range w.ResultChan() {
				time.Sleep(lag)
				late.Action(e.Type, e.Object)
			}
		}()
		return true, late, nil
	})
	s.run()
	return s
}

// lateWatch shows what another watch has shown before.
type lateWatch struct {
	*watch.RaceFreeFakeWatcher
	of watch.Interface
}

func (l lateWatch) Stop() {
	l.of.Stop()
	l.RaceFreeFakeWatcher.Stop()
}

// loseTemplate has a tenant delete a template, and put another in its place.
func (s *stage) loseTemplate(namespace string, other *resourcev1.ResourceClaimTemplate) {
	templates := s.ResourceV1().ResourceClaimTemplates(namespace)
	err := templates.Delete(s.t.Context(), four, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	if other != nil {
		_, created := templates.Create(s.t.Context(), other, metav1.CreateOptions{})
		err = errors.Join(err, created)
	}
	if err != nil {
		s.t.Error(err)
	}
}

// TestWriterSeesTemplatesLate has a template go, or another come in its place, just before a pod comes that names it: the pod is seen
// first.
func TestWriterSeesTemplatesLate(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]*resourcev1.ResourceClaimTemplate{"deleted": nil, "another in its place": lying("team-a", four)} {
		for _, lag := range []time.Duration{time.Millisecond, 20 * time.Millisecond, time.Second} {
			for first, before := range map[string][]runtime.Object{"the first pod": {templateOf("team-a", four)},
				"a further pod": {pod("team-a", "p", four)}} {
				t.Run(name+" "+lag.String()+" "+first, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := lagging(t, lag, before...)
						s.want("team-a/" + four)
						s.loseTemplate("team-a", other)
						s.create(pod("team-a", "q", four))
						s.pass(2*lag + 2*settle)
						if other != nil {
							s.pass(pause) // its end is seen first
						}
						s.want("team-a/" + four)
						s.stop()
						s.pass(10 * lag) // what is on its way
					})
				})
			}
		}
	}
}

// TestWriterLosesTemplates has a tenant delete a template that pods name again and again: the leader does little more than it does
// anyway, others do not wait, and the template is there soon after the last time.
func TestWriterLosesTemplates(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]*resourcev1.ResourceClaimTemplate{"deleted": nil, "another in its place": lying("team-a", four)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := start(t, under("claim", "team-a", "team-b"), pod("team-a", "p", four), pod("team-b", "p", four))
				looks := s.looks.Load()
				for range 300 {
					s.loseTemplate("team-a", other)
					s.pass(200 * time.Millisecond)
				}
				if n := s.looks.Load() - looks; n < 10 || n > 30 {
					t.Errorf("%d syncs in a minute", n)
				}
				s.loseTemplate("team-a", nil)
				s.loseTemplate("team-b", nil)
				s.pass(2 * settle)
				if got := s.have(); !slices.Contains(got, "team-b/"+four) {
					t.Errorf("team-b waits for team-a: %q", got)
				}
				s.pass(pause)
				s.want("team-a/"+four, "team-b/"+four)
				s.pass(time.Hour)
				looks = s.looks.Load()
				s.loseTemplate("team-c", nil)
				s.pass(10 * time.Minute)
				if n := s.looks.Load() - looks; n > 11 {
					t.Errorf("%d syncs in ten minutes without a change", n)
				}
				s.stop()
			})
		})
	}
}

// TestWriterLetsGo has what nobody names go while it leads, and what is named while it does not: neither wakes anybody.
func TestWriterLetsGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := start(t, under("claim", "team-a"), templateOf("team-a", four))
		looks := s.looks.Load()
		s.loseTemplate("team-a", lying("team-a", four))
		s.loseTemplate("team-a", nil)
		s.pass(time.Second)
		if s.looks.Load() != looks {
			t.Error("a template that no pod names wakes somebody")
		}
		s.stop()
	})
}
