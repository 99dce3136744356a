package ledger

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/gpuslice/gpuslice/policies/quota"
)

// ReservationTTL is the age from which a reservation without a listed pod is dropped. The API server ends a request after 34
// seconds at the latest; the rest is a margin for API servers whose clocks differ and writes that arrive late.
const ReservationTTL = 60 * time.Second

// State is the content of a ledger. Its methods return new values and never change their receiver.
type State struct {
	// Base is the sum of the pods that were last found, by a list or a view: one Holding for each namespace, set of pools and traits.
	Base []quota.Holding `json:"base,omitempty"`
	// Namespaces are those of Base, also without a pod. Pods of other namespaces are not counted.
	Namespaces []string `json:"namespaces,omitempty"`
	// Revisions are the resource versions of Base by namespace: its parts may be of different lists and views. Without one, an
	// earlier release wrote the ledger, or the server's resource versions are no numbers.
	Revisions map[string]uint64 `json:"revisions,omitempty"`
	// Reservations are those of admitted pods that are in no list yet, oldest first.
	Reservations []Reservation `json:"reservations,omitempty"`
	// NotBefore is when pods are admitted again, after reservations may have been lost with an earlier ledger. It is reset by
	// the first list that starts after it, which finds the pods of those reservations.
	NotBefore time.Time `json:"notBefore,omitzero"`
}

// Reservation is the capacity that is kept for one admitted pod.
type Reservation struct {
	PodUID       string        `json:"podUID"`
	Name         string        `json:"name"`
	NamespaceUID string        `json:"namespaceUID,omitempty"`
	CreatedAt    time.Time     `json:"createdAt"`
	Holding      quota.Holding `json:"holding"` // includes the pod's namespace
}

// Listing is one consistent list of a budget's namespaces.
type Listing struct {
	// StartedAt is when the list began at the earliest, by the API server's clock.
	StartedAt  time.Time
	Namespaces []Namespace // all that were listed
	Pods       []Pod       // those that have neither succeeded nor failed
	// Gone are pods that were seen to end or to be deleted, before or after the list.
	Gone *GonePods
}

// View is a watch's view of a budget's namespaces: exactly the pods that there were at the revision of each.
type View struct {
	Namespaces []Namespace
	Base       []quota.Holding // as in State
	// Shown are the UIDs of those reservations whose pods are in Base.
	Shown     map[string]bool
	Unmanaged []Pod
	Gone      *GonePods // as in Listing
	// Pending is true while the watch of one of the namespaces begins, or is broken.
	Pending bool
}

// Namespace is a namespace of a list. One that does not exist has no UID.
type Namespace struct {
	Name    string
	UID     string
	Created time.Time
	// Revision is the resource version at which the list shows exactly the pods there were. 0: unknown.
	Revision uint64
}

// Pod is a pod of a list.
type Pod struct {
	UID     string
	Name    string
	Holding quota.Holding
	// Unmanaged is true of a pod that should have a trusted promise and has none: it was created without a review.
	Unmanaged bool
}

// Used returns the holdings and reservations within the scope. Reservations of one namespace and name count by their
// maximum: two pods of one name cannot exist.
func (s State) Used(scope quota.Scope) quota.Charge {
	return NewTally(s).usedExcept(scope, podName{})
}

// Held returns the living pods' holdings within the scope when they were last listed.
func (s State) Held(scope quota.Scope) (c quota.Charge) {
	for _, h := range s.Base {
		c = c.Plus(h.In(scope))
	}
	return c
}

// Figures returns the figures of the limits of the budget's quota.
func (s State) Figures(q quota.Quota) []quota.Figure {
	tally := NewTally(s)
	return q.Figures(s.Held, func(scope quota.Scope) quota.Charge { return tally.usedExcept(scope, podName{}) })
}

// Covers reports whether the last list contained all these namespaces. Others may have any number of pods.
func (s State) Covers(namespaces []string) bool {
	return !slices.ContainsFunc(namespaces, func(n string) bool { return !slices.Contains(s.Namespaces, n) })
}

// WithList returns s, which was read before the list began, with the list as the new base, and without the reservations that the
// list makes obsolete. The result may be written only over s.
func (s State) WithList(l Listing) State { return s.withList(l, baseOf(l.Pods), l.Namespaces) }

// WithNewerParts is WithList for an s that may have been read after the list began, and HasRevisions of its namespaces. Of each
// namespace the newer part stays: that of s or the list's. The pods of obsolete reservations are in it, or have ended, or can no
// longer be created.
func (s State) WithNewerParts(l Listing) State {
	base, namespaces := s.newerParts(baseOf(l.Pods), l.Namespaces)
	return s.withList(l, base, namespaces)
}

// withList returns s with a new base of these namespaces, and without the reservations that the list makes obsolete.
func (s State) withList(l Listing, base []quota.Holding, namespaces []Namespace) State {
	listed := make(map[string]bool, len(l.Pods))
	for _, p := range l.Pods {
		listed[p.UID] = true
	}
	out := s.withBase(base, namespaces, func(r Reservation) bool {
		return listed[r.PodUID] || l.Gone.Has(r.PodUID) || r.expired(l.StartedAt) || r.ofDeletedNamespace(l.Namespaces)
	})
	if !l.StartedAt.Before(out.NotBefore) { // the lost reservations have expired, or their pods are in the list
		out.NotBefore = time.Time{}
	}
	return out
}

// newerParts returns the newer base of each namespace: the found one, or its part of s.
func (s State) newerParts(found []quota.Holding, of []Namespace) ([]quota.Holding, []Namespace) {
	kept := make(map[string]bool)
	of = slices.Clone(of)
	for i, n := range of {
		if n.Revision > 0 && n.Revision < s.Revisions[n.Name] {
			kept[n.Name], of[i].Revision = true, s.Revisions[n.Name]
		}
	}
	if len(kept) == 0 {
		return found, of
	}
	base := slices.DeleteFunc(slices.Clone(found), func(h quota.Holding) bool { return kept[h.Namespace] })
	for _, h := range s.Base {
		if kept[h.Namespace] {
			base = append(base, h)
		}
	}
	slices.SortStableFunc(base, func(a, b quota.Holding) int { return strings.Compare(a.Namespace, b.Namespace) })
	return base, of
}

// WithView returns s with the view's pods as the new base, and without the reservations of those pods. The result may
// be written only over s. It returns s and false if s is newer than the view. Nothing expires: a watch may be late.
func (s State) WithView(v View) (State, bool) {
	if !s.NotNewerThan(v.Namespaces) {
		return s, false
	}
	return s.withBase(v.Base, v.Namespaces, func(r Reservation) bool { return v.Shown[r.PodUID] || v.Gone.Has(r.PodUID) }), true
}

// withBase returns s with a new base of these namespaces, and without some reservations.
func (s State) withBase(base []quota.Holding, of []Namespace, obsolete func(Reservation) bool) State {
	out := State{Base: base, NotBefore: s.NotBefore}
	for _, n := range of {
		out.Namespaces = append(out.Namespaces, n.Name)
		if n.Revision > 0 {
			out.setRevision(n)
		}
	}
	slices.Sort(out.Namespaces)
	for _, r := range s.Reservations {
		if !obsolete(r) {
			out.Reservations = append(out.Reservations, r)
		}
	}
	return out
}

func (s *State) setRevision(n Namespace) {
	if s.Revisions == nil {
		s.Revisions = make(map[string]uint64)
	}
	s.Revisions[n.Name] = n.Revision
}

// NotNewerThan reports whether a list or view is at least as new as s, namespace by namespace. Then its pods can replace s.Base,
// although s was read later: a living pod without a reservation in s was shown by something that s rests on, so that the view
// shows it too.
func (s State) NotNewerThan(found []Namespace) bool {
	return s.HasRevisions(namesOf(found)) && !s.newerThan(found)
}

// newerThan reports whether s is newer than a list or view in one of its namespaces, or may be. A list that began after s was read
// cannot be older: if its resource versions are, etcd or the ledger was restored.
func (s State) newerThan(found []Namespace) bool {
	return slices.ContainsFunc(found, func(n Namespace) bool { return n.Revision == 0 || n.Revision < s.Revisions[n.Name] })
}

// HasRevisions reports whether s has a revision of each of these namespaces, counts no others and has lost nothing. A list or view
// can then be compared with it: both have resource versions of pods.
func (s State) HasRevisions(namespaces []string) bool {
	unknown := func(name string) bool { return s.Revisions[name] == 0 }
	return s.NotBefore.IsZero() && len(s.Namespaces) == len(namespaces) && !slices.ContainsFunc(namespaces, unknown)
}

func namesOf(namespaces []Namespace) (names []string) {
	for _, n := range namespaces {
		names = append(names, n.Name)
	}
	return names
}

// equalExceptRevisions reports whether both contain the same pods and reservations.
func (s State) equalExceptRevisions(other State) bool {
	same := func(a, b any) bool { return reflect.DeepEqual(a, b) }
	return slices.EqualFunc(s.Base, other.Base, func(a, b quota.Holding) bool { return same(a, b) }) &&
		slices.EqualFunc(s.Reservations, other.Reservations, func(a, b Reservation) bool { return same(a, b) })
}

// expired reports whether the reservation's pod can no longer be created. at is when the list began: a list does not show
// pods that were created after that.
func (r Reservation) expired(at time.Time) bool { return at.Sub(r.CreatedAt) > ReservationTTL }

// namespaceMargin is how much older than its namespace a reservation must be to belong to an earlier namespace of that name:
// API servers' clocks differ, and the replica that reserved may have cached the old UID.
const namespaceMargin = 25 * time.Second

// ofDeletedNamespace reports whether the reservation's namespace was deleted and created again since.
func (r Reservation) ofDeletedNamespace(namespaces []Namespace) bool {
	i := slices.IndexFunc(namespaces, func(n Namespace) bool { return n.Name == r.Holding.Namespace })
	if i < 0 || r.NamespaceUID == "" || namespaces[i].UID == "" || namespaces[i].UID == r.NamespaceUID { // the same one, or unknown
		return false
	}
	return namespaces[i].Created.Sub(r.CreatedAt) > namespaceMargin
}

// WithoutReleased returns s without the reservations that a later state lacks. Those that are left existed all the time between.
func (s State) WithoutReleased(later State) State {
	have := make(map[string]bool, len(later.Reservations))
	for _, r := range later.Reservations {
		have[r.PodUID] = true
	}
	s.Reservations = slices.DeleteFunc(slices.Clone(s.Reservations), func(r Reservation) bool { return !have[r.PodUID] })
	return s
}

// baseOf adds up pods by namespace, pools and traits, in a stable order.
func baseOf(pods []Pod) []quota.Holding {
	sums := make(map[string]quota.Holding)
	for _, p := range pods {
		if p.Holding.Charge == (quota.Charge{}) {
			continue
		}
		key := fmt.Sprintf("%s\x00%s\x00%+v", p.Holding.Namespace, strings.Join(p.Holding.Pools, "\x00"), p.Holding.Traits)
		if sum, ok := sums[key]; ok {
			sums[key] = sum.Plus(p.Holding)
		} else {
			sums[key] = p.Holding
		}
	}
	out := make([]quota.Holding, 0, len(sums))
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, sums[key])
	}
	return out
}
