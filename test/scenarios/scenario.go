package scenarios

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/txtar"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
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
	Runtimes   pools.Runtimes // what Cluster tells
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
		return s, fmt.Errorf("it begins with no sentence that says what it is about")
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

// Nodes reads the nodes of the named files, each a stream of Node documents.
func Nodes(names ...string) ([]*corev1.Node, error) {
	var nodes []*corev1.Node
	for _, name := range names {
		b, err := files.ReadFile("nodes/" + name + ".yaml")
		if err != nil {
			return nil, err
		}
		for doc := range strings.SplitSeq(string(b), "\n---\n") {
			var n corev1.Node
			if err := yaml.UnmarshalStrict([]byte(doc), &n); err != nil {
				return nil, fmt.Errorf("nodes %s: %w", name, err)
			}
			nodes = append(nodes, &n)
		}
	}
	return nodes, nil
}

// Published is what the pools of nodes are read from whose drivers publish the named files of slices.
func Published(nodes, published []string) (pools.Source, error) {
	s := Scenario{SliceFiles: published}
	if err := s.readSlices(); err != nil {
		return pools.Source{}, err
	}
	var err error
	s.Nodes, err = Nodes(nodes...)
	return s.Source(), err
}

// Tried is what the pools are read from of the block "text tried on TEXT" of a page: "no nodes", or names of files of nodes, and after
// "publishing" those of slices.
func Tried(text string) (pools.Source, error) {
	if text == "no nodes" {
		return pools.Source{}, nil // declared pools alone
	}
	nodes, published, _ := strings.Cut(text, " publishing ")
	return Published(strings.Fields(nodes), strings.Fields(published))
}

// readSlices reads what drivers publish and the classes that offer it, each file a stream of documents.
func (s *Scenario) readSlices() error {
	s.Classes = map[string]*resourcev1.DeviceClass{}
	for _, name := range s.SliceFiles {
		b, err := files.ReadFile("slices/" + name + ".yaml")
		if err != nil {
			return err
		}
		for doc := range strings.SplitSeq(string(b), "\n---\n") {
			published, class := &resourcev1.ResourceSlice{}, &resourcev1.DeviceClass{}
			if strings.Contains(doc, "kind: DeviceClass") {
				err = yaml.UnmarshalStrict([]byte(doc), class)
				s.Classes[class.Name] = class
			} else {
				err = yaml.UnmarshalStrict([]byte(doc), published)
				s.Slices = append(s.Slices, published)
			}
			if err != nil {
				return fmt.Errorf("slices %s: %w", name, err)
			}
		}
	}
	return nil
}

// Source is what the pools of the case are read from.
func (s Scenario) Source() pools.Source {
	return pools.Source{Nodes: s.Nodes, Slices: s.Slices, Classes: s.Classes}
}

// runtimes reads RuntimeClasses and a ClusterPolicy, a stream of documents.
func runtimes(text []byte) (pools.Runtimes, error) {
	var classes []*nodev1.RuntimeClass
	var operator *pools.Operator
	for doc := range strings.SplitSeq(string(text), "\n---\n") {
		raw, err := yaml.YAMLToJSON([]byte(doc))
		if err != nil {
			return pools.Runtimes{}, err
		}
		var class nodev1.RuntimeClass
		if err := json.Unmarshal(raw, &class); err != nil {
			return pools.Runtimes{}, err
		}
		switch class.Kind {
		case "RuntimeClass":
			classes = append(classes, &class)
		case "ClusterPolicy":
			if operator, err = pools.ReadOperator(raw); err != nil {
				return pools.Runtimes{}, err
			}
		default:
			return pools.Runtimes{}, fmt.Errorf("kind %q: accepted: RuntimeClass, ClusterPolicy", class.Kind)
		}
	}
	return pools.RuntimesOf(classes, operator), nil
}

// failedGuards are guards that could not read the GPUs of the pools with a resource, one for each time that a namespace is named.
type failedGuards struct {
	Resource, Access string
	Namespaces       []string
}

// Failures are those of the guards, which started in the last minute.
func (s Scenario) Failures(all []pools.Pool) guardaccess.Failures {
	var reports []guardaccess.Report
	now := time.Now()
	for _, guards := range s.guards {
		for _, pool := range all {
			for n, namespace := range guards.Namespaces {
				r := guardaccess.Report{Pool: pool.Name, Access: guards.Access, Namespace: namespace, Outcome: guardaccess.Fails, Reason: "no NVML"}
				if r.Started = now.Add(time.Duration(n-len(guards.Namespaces)) * time.Second); pool.Resource == guards.Resource {
					reports = append(reports, r)
				}
			}
		}
	}
	return guardaccess.Failures{}.Update(reports, now)
}

// Input is what the core decides on.
func (s Scenario) Input() (policies.Input, error) {
	raw, violation, err := promise.DecodePod(s.Pod)
	if err != nil {
		return policies.Input{}, err
	}
	if violation != nil {
		return policies.Input{}, fmt.Errorf("%s", violation)
	}
	in := s.Governed()
	in.Pod = raw.Pod
	return in, nil
}

// Governed is what the core decides on, the pod left out. PolicyError is set where the document is broken, as the
// webhook does when it knows no good version.
func (s Scenario) Governed() policies.Input {
	in := policies.Input{Namespace: s.Namespace}
	if s.Policy == nil {
		return in
	}
	p, problems := config.Parse(api.SystemNamespace+"/"+Namespace, s.Policy)
	if len(problems) > 0 {
		in.PolicyError = problems.ToAggregate()
		return in
	}
	in.Policy = p
	in.Pools, in.PoolsComplete = s.Source().Pools(p.Pools, nil), p.Pools.Complete
	in.Guard, in.Runtimes, in.DeviceClasses = Guard(), s.Runtimes, s.Classes
	failures := s.Failures(in.Pools)
	for i := range in.Pools {
		in.Pools[i].GuardFailures = failures.Reasons(in.Pools[i].Name, s.Namespace.Name)
	}
	if s.LimitRange != nil {
		in.LimitRanges = []*corev1.LimitRange{s.LimitRange}
	}
	return in.Tightened(s.TenantDocument())
}

// TenantDocument is the tenant's own document as it is read; nil: there is none.
func (s Scenario) TenantDocument() *config.TenantDocument {
	if s.Tenant == nil {
		return nil
	}
	d := config.ReadTenantDocument(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace.Name, Name: api.TenantPolicyName},
		Data:       map[string]string{api.PolicyKey: string(s.Tenant)},
	})
	return &d
}

// Guard is the guard that every case's installation offers.
func Guard() *config.GuardSettings {
	return &config.GuardSettings{Image: "gpuslice/guard:test", PullPolicy: corev1.PullIfNotPresent, CPU: "20m", Memory: "64Mi"}
}

// Verdict is a Decision as want/verdict says it.
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
