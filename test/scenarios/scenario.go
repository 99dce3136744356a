package scenarios

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/pools"
)

//go:embed cases/*.txtar nodes/*.yaml slices/*.yaml
var files embed.FS

// Namespace is the namespace of every case, unless namespace.yaml names another.
const Namespace = "team-a"

// Scenario is one case, read.
type Scenario struct {
	Name    string // the file's name without .txtar
	Comment string
	Policy  []byte // the document; nil: no policy governs the namespace
	Tenant  []byte // the tenant's own document; nil: there is none
	// LimitRange is one of the namespace; nil: there is none.
	LimitRange *corev1.LimitRange
	NodeFiles  []string
	Nodes      []*corev1.Node
	SliceFiles []string
	Slices     []*resourcev1.ResourceSlice
	Classes    map[string]*resourcev1.DeviceClass
	Cluster    []byte         // RuntimeClasses and a ClusterPolicy, as YAML
	Runtimes   pools.Runtimes // from Cluster
	guards     []failedGuards
	Namespace  api.Namespace
	Pod        []byte // JSON, as the author wrote it
	Old        []byte // JSON of the live pod; nil: the case is a CREATE
	Want       map[string]string
	live       []byte // JSON of the pod that Old is made from
	archive    *txtar.Archive
}

// All reads every case, sorted by name. A section that no case may have, or a file that cannot be read, is an error.
func All() ([]Scenario, error) {
	names, err := fs.Glob(files, "cases/*.txtar")
	if err != nil {
		return nil, err
	}
	var all []Scenario
	for _, name := range names {
		b, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		s, err := read(strings.TrimSuffix(path.Base(name), ".txtar"), b)
		if err != nil {
			return nil, fmt.Errorf("read scenario %s: %w", name, err)
		}
		all = append(all, s)
	}
	return all, nil
}

func read(name string, b []byte) (Scenario, error) {
	a := txtar.Parse(b)
	s := Scenario{Name: name, Comment: strings.TrimSpace(string(a.Comment)), Want: map[string]string{}, archive: a,
		Namespace: api.Namespace{Name: Namespace, Labels: map[string]string{}}}
	if s.Comment == "" {
		return s, fmt.Errorf("it begins with no sentence about its subject")
	}
	for _, f := range a.Files {
		if err := s.section(f); err != nil {
			return s, fmt.Errorf("section %s: %w", f.Name, err)
		}
	}
	if s.Pod == nil {
		return s, fmt.Errorf("it has no pod.yaml")
	}
	if s.live != nil {
		return s, s.makeLive()
	}
	return s, nil
}

// makeLive makes the live pod of the one that its author wrote.
func (s *Scenario) makeLive() error {
	created := *s
	created.Pod = s.live
	in, err := created.Input()
	if err != nil {
		return err
	}
	d := policies.Decide(in)
	if d.Outcome != policies.Mutated && d.Outcome != policies.DevicesHidden {
		return fmt.Errorf("live.yaml gives no live pod: %s: %s", d.Outcome, d.Message())
	}
	s.Old, err = json.Marshal(d.Rewrite(in.Pod))
	return err
}

func (s *Scenario) section(f txtar.File) (err error) {
	switch {
	case f.Name == "policy.yaml":
		s.Policy = f.Data
	case f.Name == "tenant.yaml":
		s.Tenant = f.Data
	case f.Name == "limitrange.yaml":
		s.LimitRange = &corev1.LimitRange{}
		err = yaml.UnmarshalStrict(f.Data, s.LimitRange)
	case f.Name == "pod.yaml":
		s.Pod, err = yaml.YAMLToJSON(f.Data)
	case f.Name == "old.yaml":
		s.Old, err = yaml.YAMLToJSON(f.Data)
	case f.Name == "live.yaml":
		s.live, err = yaml.YAMLToJSON(f.Data)
	case f.Name == "namespace.yaml":
		err = s.readNamespace(f.Data)
	case f.Name == "nodes":
		s.NodeFiles = strings.Fields(string(f.Data))
		s.Nodes, err = Nodes(s.NodeFiles...)
	case f.Name == "slices":
		s.SliceFiles = strings.Fields(string(f.Data))
		err = s.readSlices()
	case f.Name == "cluster.yaml":
		s.Cluster = f.Data
		s.Runtimes, err = runtimes(f.Data)
	case f.Name == "guards.yaml":
		err = yaml.UnmarshalStrict(f.Data, &s.guards)
	case strings.HasPrefix(f.Name, "want/"):
		s.Want[strings.TrimPrefix(f.Name, "want/")] = string(f.Data)
	default:
		err = fmt.Errorf("no case has such a section")
	}
	return err
}

func (s *Scenario) readNamespace(data []byte) error {
	var ns corev1.Namespace
	if err := yaml.UnmarshalStrict(data, &ns); err != nil {
		return err
	}
	if ns.Name != "" {
		s.Namespace.Name = ns.Name
	}
	s.Namespace.Labels = ns.Labels
	return nil
}

// Verdict is a Decision in the form of want/verdict.
func Verdict(d policies.Decision) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", d.Outcome, d.Reason())
	if d.IfEnforced != d.Outcome {
		fmt.Fprintf(&b, "would be: %s\n", d.IfEnforced)
	}
	for _, v := range d.Violations {
		fmt.Fprintf(&b, "denial: %s\n", v)
	}
	for _, w := range d.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}

// Archive is the case with other want sections, as it is to be written back.
func (s Scenario) Archive(want map[string]string) []byte {
	a := &txtar.Archive{Comment: s.archive.Comment}
	for _, f := range s.archive.Files {
		if !strings.HasPrefix(f.Name, "want/") {
			a.Files = append(a.Files, f)
		}
	}
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for k := range want {
			if !yield(k) {
				return
			}
		}
	}) {
		a.Files = append(a.Files, txtar.File{Name: "want/" + name, Data: []byte(want[name])})
	}
	return txtar.Format(a)
}
