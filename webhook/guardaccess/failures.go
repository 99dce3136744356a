package guardaccess

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Annotation has the Failures, on the ConfigMap gpuslice-state. It is no key of the ConfigMap's data: a replica of an older
// release writes all of the data, and leaves annotations.
const Annotation = "gpuslice.dev/guard-failures"

// KeepFor is how long a guard counts after its start. A policy that demands a guard denies pods meanwhile, so that no guard
// starts which could end that.
const KeepFor = 24 * time.Hour

// Bounds on stored reports. All annotations of an object together hold 256 KiB.
const (
	maxFailures   = 48
	maxNamespaces = 4
	maxReason     = 120
	maxText       = 200 << 10
)

// Failures are the pools on which guards could not read the GPUs, since the last one that could.
type Failures []Failure

// Failure is one pool, and one way to its driver.
type Failure struct {
	Pool       string            `json:"pool"`
	Access     string            `json:"access"` // "env, runtime class nvidia"
	Namespaces map[string]Guards `json:"namespaces"`
}

// Guards are the guards of one namespace's pods.
type Guards struct {
	First  time.Time `json:"first"` // when the first and the last of them started
	Last   time.Time `json:"last"`
	Reason string    `json:"reason"` // of the last; whoever may write Events in the namespace may have written it
}

// place is the key of Failures.
type place struct{ pool, access string }

// Of returns the failures in the state (nil: there is none), including failures that are over.
func Of(state *corev1.ConfigMap) Failures {
	if state == nil {
		return nil
	}
	return Decode(state.Annotations[Annotation])
}

// Decode reads the annotation. An unreadable one counts as missing: the guards that run report again.
func Decode(text string) Failures {
	var all Failures
	if len(text) > maxText || json.Unmarshal([]byte(text), &all) != nil {
		return nil
	}
	return all.bounded()
}

// Encode returns the annotation's text, "" where there are none: the same text for the same Failures.
func (f Failures) Encode() string {
	if len(f) == 0 {
		return ""
	}
	text, err := json.Marshal(f)
	if err != nil {
		panic("encode failures: " + err.Error()) // every field is plain data
	}
	return string(text)
}

// Current are the failures that still count.
func (f Failures) Current(now time.Time) Failures {
	var out Failures
	for _, one := range f {
		one.Namespaces = maps.Clone(one.Namespaces)
		maps.DeleteFunc(one.Namespaces, func(_ string, g Guards) bool { return over(g.Last, now) })
		if len(one.Namespaces) > 0 {
			out = append(out, one)
		}
	}
	return out
}

func over(started, now time.Time) bool {
	age := now.Sub(started)
	return age >= KeepFor || age <= -KeepFor
}

// Reasons are why guards of a namespace's pods do not count on a pool, by their way to the driver.
func (f Failures) Reasons(pool, namespace string) map[string]string {
	var out map[string]string
	for _, one := range f {
		reason := one.reason(namespace)
		if one.Pool != pool || reason == "" {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[one.Access] = reason
	}
	return out
}

// reason quotes no guard: tenants would read each other's texts.
func (f Failure) reason(namespace string) string {
	own, ok := f.Namespaces[namespace]
	switch {
	case len(f.Namespaces) > 1:
		return fmt.Sprintf("the last guards there, of pods in %d namespaces, could not read the GPUs", len(f.Namespaces))
	case ok && own.Last.After(own.First):
		return "the namespace's last guards there could not read the GPUs"
	}
	return ""
}

// bounded is f in a stable order, within the bounds: the newest stay.
func (f Failures) bounded() Failures {
	for i := range f {
		f[i].keepNewest()
	}
	f = slices.DeleteFunc(f, func(one Failure) bool { return len(one.Namespaces) == 0 })
	slices.SortFunc(f, func(a, b Failure) int { return b.last().Compare(a.last()) })
	f = f[:min(len(f), maxFailures)]
	slices.SortFunc(f, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Access, b.Access))
	})
	if len(f) == 0 {
		return nil
	}
	return f
}

func (f *Failure) keepNewest() {
	names := slices.SortedFunc(maps.Keys(f.Namespaces), func(a, b string) int {
		return cmp.Or(f.Namespaces[b].Last.Compare(f.Namespaces[a].Last), cmp.Compare(a, b))
	})
	for n, name := range names {
		if n >= maxNamespaces {
			delete(f.Namespaces, name)
			continue
		}
		g := f.Namespaces[name]
		g.Reason = g.Reason[:min(len(g.Reason), maxReason)]
		f.Namespaces[name] = g
	}
}

func (f *Failure) last() (at time.Time) {
	for _, g := range f.Namespaces {
		if g.Last.After(at) {
			at = g.Last
		}
	}
	return at
}
