package spellings

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/podspec"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// Found is the request in one system's words for one container, or, without a container, for the pod.
type Found struct {
	Spelling  Spelling
	Container string
	// Names are the names that were read: resources of the container, or annotations, labels and selectors of the pod.
	Names []string
	// Resources are the quantities of the container's resources. No node offers them where the system is not installed.
	Resources map[string]string
	Part      Part
	// ContainerFrom is the name that selects the container of the slice; "": none does.
	ContainerFrom string
	Unread        []string // names that have no form in gpuslice
	Selected      bool     // it is read from a node selector, which nodes of the system have
	Err           error    // why it cannot be read
}

// maxNames are the names that are read of one pod.
const maxNames = 512

// known are the spellings by the names that they read.
var known = index(All())

type vocabulary struct{ resources, words, selectors map[string]*Spelling }

func index(all []Spelling) vocabulary {
	n := vocabulary{map[string]*Spelling{}, map[string]*Spelling{}, map[string]*Spelling{}}
	for i := range all {
		s := &all[i]
		for _, of := range []struct {
			from map[string]reading
			to   map[string]*Spelling
		}{{s.Resources, n.resources}, {s.Words, n.words}, {s.Selectors, n.selectors}} {
			for name := range of.from {
				of.to[name] = s
			}
		}
		for prefix := range s.Sized {
			n.resources[prefix] = s
		}
		for prefix := range s.Named {
			n.words[prefix] = s
		}
	}
	return n
}

// Find reads the requests of a pod in the words of other systems. Units are those of memory, by system, where they are configured.
func Find(pod *corev1.Pod, units map[string]quantity.MiB) []Found {
	f := finder{units: units}
	for c := range podspec.Containers(&pod.Spec) {
		for _, list := range []corev1.ResourceList{c.Resources.Limits, c.Resources.Requests} {
			for name, q := range list {
				s := known.resources[string(name)]
				if s == nil && strings.HasPrefix(string(name), nosPrefix) && strings.HasSuffix(string(name), nosSuffix) {
					s = known.resources[nosPrefix]
				}
				if s != nil && !q.IsZero() {
					f.resource(s, c.Name, string(name), q)
				}
			}
		}
	}
	for i, texts := range []map[string]string{pod.Annotations, pod.Labels} {
		for name, text := range texts {
			s := known.words[name]
			if s == nil && i == 0 && strings.HasPrefix(name, nvidiaPrefix) {
				s = known.words[nvidiaPrefix]
			}
			if s != nil {
				f.word(s, name, text)
			}
		}
	}
	for name, text := range pod.Spec.NodeSelector {
		if s := known.selectors[name]; s != nil {
			f.add(s, "", name, value{text: text}, s.Selectors[name]).Selected = true
		}
	}
	if f.groups == nil {
		return nil
	}
	return f.found(pod)
}

// Resources reports whether all are resources of other systems with quantities that are cheap to read.
func Resources(all map[string]string) bool {
	for name, text := range all {
		sized := strings.HasPrefix(name, nosPrefix) && strings.HasSuffix(name, nosSuffix)
		if known.resources[name] == nil && !sized || len(text) > quantity.MaxText || !quantity.Cheap.MatchString(text) {
			return false
		}
	}
	return true
}

// finder collects names by system and container.
type finder struct {
	groups map[string]*group
	names  int
	units  map[string]quantity.MiB
}

// group is the request under one system's names for one container.
type group struct {
	Found
	values   map[string]value
	readings map[string]reading
}

func (f *finder) add(s *Spelling, container, name string, v value, read reading) *group {
	key := s.Name + "/" + container
	g := f.groups[key]
	if g == nil {
		if f.groups == nil {
			f.groups = map[string]*group{}
		}
		g = &group{Found: Found{Spelling: *s, Container: container}, values: map[string]value{}, readings: map[string]reading{}}
		if f.names < maxNames {
			f.groups[key] = g
		}
	}
	if f.names++; f.names > maxNames {
		return g // found denies them all: which ones came first differs
	}
	if was, twice := g.values[name]; twice && was.text != v.text {
		g.Err = fmt.Errorf("%s is %s in one place and %s in another", name, message.Quote(was.text), message.Quote(v.text))
	}
	g.values[name], g.readings[name] = v, read
	return g
}

func (f *finder) resource(s *Spelling, container, name string, q resource.Quantity) {
	v := value{q.String(), &q}
	read := s.Resources[name]
	if read == nil {
		read = func(v value, into *collected) error {
			return s.Sized[nosPrefix](strings.TrimPrefix(name, nosPrefix), v, into)
		}
	}
	g := f.add(s, container, name, v, read)
	if g.Resources == nil {
		g.Resources = map[string]string{}
	}
	g.Resources[name] = v.text
}

func (f *finder) word(s *Spelling, name, text string) {
	if read := s.Words[name]; read != nil {
		f.add(s, "", name, value{text: text}, read)
		return
	}
	if container, read, ok := s.Named[nvidiaPrefix](strings.TrimPrefix(name, nvidiaPrefix)); ok {
		f.add(s, container, name, value{text: text}, read)
	}
}

// found reads the groups, in an order that is always the same.
func (f *finder) found(pod *corev1.Pod) (all []Found) {
	if f.names > maxNames {
		return []Found{{Spelling: Spelling{System: "other systems"}, Err: fmt.Errorf("more than %d names in one pod are not read", maxNames)}}
	}
	for _, key := range slices.Sorted(maps.Keys(f.groups)) {
		g := f.groups[key]
		if f.fold(g) {
			continue
		}
		g.read(f.units[g.Spelling.Name])
		if g.Container != "" && g.Err == nil && !podspec.HasContainer(&pod.Spec, g.Container) {
			g.Err = fmt.Errorf("%s is not a container of this pod", message.Quote(g.Container))
		}
		if g.Err != nil || !g.Part.Empty() {
			all = append(all, g.Found)
		}
	}
	return all
}

// fold gives a system's words of the pod to its containers, where they request anything: how many devices each has, for one. It
// reports whether there are such.
func (f *finder) fold(words *group) (folded bool) {
	if words.Container != "" {
		return false
	}
	for _, g := range f.groups {
		if g.Spelling.Name != words.Spelling.Name || len(g.Resources) == 0 {
			continue
		}
		folded = true
		g.Err = cmp.Or(g.Err, words.Err)
		for name, v := range words.values {
			if _, there := g.values[name]; !there { // the container's own is nearer
				g.values[name], g.readings[name] = v, words.readings[name]
			}
		}
	}
	return folded
}

func (g *group) read(unit quantity.MiB) {
	c := collected{unit: unit}
	g.Names = slices.Sorted(maps.Keys(g.values))
	for _, name := range g.Names {
		if err := g.readings[name](g.values[name], &c); err != nil && g.Err == nil {
			g.Err = fmt.Errorf("%s: %w", name, err)
		}
		if c.Container != "" {
			g.ContainerFrom = cmp.Or(g.ContainerFrom, name)
		}
	}
	if g.Err == nil {
		g.Err = c.settle(g.Spelling.complete)
	}
	if g.Err == nil && g.Spelling.Unit > 0 {
		g.Err = g.implausible(c.Size.Memory, cmp.Or(unit, g.Spelling.Unit))
	}
	g.Part, g.Unread = c.Part, c.unread
	if g.Err != nil {
		g.Part = Part{}
	}
}

// smallest and largest bound plausible amounts, in MiB.
const smallest, largest = 64, 1 << 20

// implausible is the error for an amount of which the unit is most likely another.
func (g *group) implausible(amount, unit quantity.MiB) error {
	likely := quantity.MiB(1)
	switch {
	case amount > 0 && amount < smallest:
		likely = 1024
	case amount <= largest:
		return nil
	}
	if likely == unit {
		return fmt.Errorf("%s is %s of a GPU, counted in units of %s: correct the amount", message.JoinNames(g.Names), amount, unit)
	}
	return fmt.Errorf("%s is %s of a GPU, counted in units of %s; where the device plugin of %s is configured with another unit, "+
		"write memoryUnits: {%s: %s} or what it is in the policy (gpuslice translate: --memory-unit)",
		message.JoinNames(g.Names), amount, unit, g.Spelling.System, g.Spelling.Name, likely)
}
