package ledgertest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// ErrNameTaken is the error of a create when a pod of that name exists.
var ErrNameTaken = errors.New("a pod of that name exists")

// Cluster is the stored state. It is safe for concurrent use.
type Cluster struct {
	mu         sync.Mutex
	version    int
	objects    map[string]ledger.Object
	pods       map[string]ledger.Pod // by UID; those that have neither ended nor been deleted
	ended      map[string]ledger.Pod // succeeded or failed, and still stored
	namespaces map[string]ledger.Namespace
	writes     map[string]int
	flying     sync.WaitGroup
	watch      func()
	history    []moment
}

// moment is which pods lived from an instant on, and the ledgers.
type moment struct {
	from    time.Time
	version int
	pods    map[string]ledger.Pod
	objects map[string]ledger.Object
}

// Watch calls see after each change with the state of the budget's ledger and the living pods. It skips no change, and none
// happens before see has returned. Call it before any other method.
func (c *Cluster) Watch(budgetKey string, see func(ledger.State, map[string]ledger.Pod)) {
	c.watch = func() {
		var state ledger.State
		if object, ok := c.objects[ledger.ObjectName(budgetKey)]; ok {
			_, state, _ = ledger.Decode(object.Data)
		}
		see(state, c.pods)
	}
}

// changed ends a change. The caller holds c.mu.
func (c *Cluster) changed() {
	c.version++
	c.history = append(c.history, moment{time.Now(), c.version, maps.Clone(c.pods), maps.Clone(c.objects)})
	if c.watch != nil {
		c.watch()
	}
	c.mu.Unlock()
}

// Wait returns when no call is in flight any more, including calls whose caller is gone.
func (c *Cluster) Wait() { c.flying.Wait() }

// New returns a cluster with these namespaces.
func New(namespaces ...string) *Cluster {
	c := &Cluster{objects: make(map[string]ledger.Object), pods: make(map[string]ledger.Pod), ended: make(map[string]ledger.Pod),
		namespaces: make(map[string]ledger.Namespace), writes: make(map[string]int)}
	for _, n := range namespaces {
		c.MakeNamespace(n)
	}
	return c
}

// MakeNamespace creates a namespace, or deletes it with all its pods and creates it again. It returns the UID.
func (c *Cluster) MakeNamespace(name string) string {
	c.mu.Lock()
	defer c.changed()
	c.version++
	in := func(_ string, p ledger.Pod) bool { return p.Holding.Namespace == name }
	deleteFunc(c.pods, in)
	deleteFunc(c.ended, in)
	n := ledger.Namespace{Name: name, UID: "ns-" + strconv.Itoa(c.version), Created: time.Now()}
	c.namespaces[name] = n
	return n.UID
}

func deleteFunc(pods map[string]ledger.Pod, which func(string, ledger.Pod) bool) {
	for uid, p := range pods {
		if which(uid, p) {
			delete(pods, uid)
		}
	}
}

// CreatePod stores a pod, as the API server does after admission.
func (c *Cluster) CreatePod(p ledger.Pod) error {
	c.mu.Lock()
	defer c.changed()
	for _, pods := range []map[string]ledger.Pod{c.pods, c.ended} {
		for _, have := range pods {
			if have.Name == p.Name && have.Holding.Namespace == p.Holding.Namespace {
				return fmt.Errorf("create %s: %w", p.Name, ErrNameTaken)
			}
		}
	}
	c.pods[p.UID] = p
	return nil
}

// EndPod lets a pod succeed. It stays stored until it is deleted.
func (c *Cluster) EndPod(uid string) {
	c.mu.Lock()
	defer c.changed()
	if p, ok := c.pods[uid]; ok {
		delete(c.pods, uid)
		c.ended[uid] = p
	}
}

// DeletePod removes a pod.
func (c *Cluster) DeletePod(uid string) {
	c.mu.Lock()
	defer c.changed()
	delete(c.pods, uid)
	delete(c.ended, uid)
}

// Live returns the holdings of the living pods of a namespace ("": of all), and their number.
func (c *Cluster) Live(namespace string) (held quota.Charge, pods int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pods {
		if namespace == "" || p.Holding.Namespace == namespace {
			held = held.Plus(p.Holding.Charge)
			pods++
		}
	}
	return held, pods
}

// State returns the state of the budget's ledger; the zero State if there is none.
func (c *Cluster) State(budgetKey string) (ledger.State, error) {
	c.mu.Lock()
	object, ok := c.objects[ledger.ObjectName(budgetKey)]
	c.mu.Unlock()
	if !ok {
		return ledger.State{}, nil
	}
	_, state, err := ledger.Decode(object.Data)
	return state, err
}

// Writes returns the number of writes of the budget's ledger.
func (c *Cluster) Writes(budgetKey string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writes[ledger.ObjectName(budgetKey)]
}

// DeleteLedger deletes the budget's ledger.
func (c *Cluster) DeleteLedger(budgetKey string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.objects, ledger.ObjectName(budgetKey))
}

// Corrupt writes invalid data into the budget's ledger.
func (c *Cluster) Corrupt(budgetKey string) {
	c.mu.Lock()
	defer c.changed()
	name := ledger.ObjectName(budgetKey)
	o := c.objects[name]
	c.version++
	o.Version, o.Data = strconv.Itoa(c.version), []byte("{")
	c.objects[name] = o
}

func (c *Cluster) get(name string) (ledger.Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, ok := c.objects[name]
	if !ok {
		return o, ledger.ErrNotFound
	}
	o.Data = slices.Clone(o.Data)
	return o, nil
}

func (c *Cluster) put(o ledger.Object, create bool) (ledger.Object, error) {
	c.mu.Lock()
	defer c.changed()
	have, ok := c.objects[o.Name]
	switch {
	case create && ok:
		return ledger.Object{}, ledger.ErrExists
	case !create && !ok:
		return ledger.Object{}, ledger.ErrNotFound
	case !create && have.Version != o.Version:
		return ledger.Object{}, ledger.ErrConflict
	}
	c.version++
	c.writes[o.Name]++
	o.Version, o.UID = strconv.Itoa(c.version), have.UID
	if create {
		o.UID = "uid-" + o.Version
	}
	o.Data = slices.Clone(o.Data)
	c.objects[o.Name] = o
	return o, nil
}

func (c *Cluster) list(namespaces []string) (l ledger.Listing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range namespaces {
		found, ok := c.namespaces[n]
		if !ok {
			found = ledger.Namespace{Name: n}
		}
		found.Revision = uint64(c.version)
		l.Namespaces = append(l.Namespaces, found)
	}
	for _, p := range c.pods {
		if slices.Contains(namespaces, p.Holding.Namespace) {
			l.Pods = append(l.Pods, p)
		}
	}
	return l
}

// view returns the view of a watch that is late by so much. It returns false if there is none.
func (c *Cluster) view(namespaces []string, reservations []ledger.Reservation, late time.Duration) (ledger.View, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	shown, ok := c.momentBefore(late)
	if !ok {
		return ledger.View{}, false
	}
	v := ledger.View{Shown: make(map[string]bool)}
	for _, n := range namespaces {
		v.Namespaces = append(v.Namespaces, ledger.Namespace{Name: n, Revision: uint64(shown.version)})
	}
	for _, uid := range slices.Sorted(maps.Keys(shown.pods)) {
		if p := shown.pods[uid]; slices.Contains(namespaces, p.Holding.Namespace) {
			v.Base = append(v.Base, p.Holding)
		}
	}
	for _, r := range reservations {
		if _, ok := shown.pods[r.PodUID]; ok {
			v.Shown[r.PodUID] = true
		}
	}
	return v, true
}

// shown returns a ledger as a watch shows it that is late by so much. A deletion it shows with the next change only.
func (c *Cluster) shown(name string, late time.Duration) (ledger.Object, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, _ := c.momentBefore(late)
	o, ok := m.objects[name]
	return o, ok
}

// momentBefore returns the last moment that began so long ago; false: nothing had happened by then. The caller holds c.mu.
func (c *Cluster) momentBefore(late time.Duration) (moment, bool) {
	then := time.Now().Add(-late)
	i, _ := slices.BinarySearchFunc(c.history, then, func(m moment, t time.Time) int {
		if m.from.After(t) {
			return 1
		}
		return -1 // the last of those that began by then is wanted
	})
	if i == 0 {
		return moment{}, false
	}
	return c.history[i-1], true
}
