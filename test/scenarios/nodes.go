package scenarios

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/pools"
)

// parsed are the nodes of each file that was read. Every scenario names one of few files.
var parsed sync.Map

// Nodes reads the nodes of the named files, each a stream of Node documents.
func Nodes(names ...string) ([]*corev1.Node, error) {
	var nodes []*corev1.Node
	for _, name := range names {
		known, ok := parsed.Load(name)
		if !ok {
			read, err := readNodes(name)
			if err != nil {
				return nil, err
			}
			known, _ = parsed.LoadOrStore(name, read)
		}
		for _, n := range known.([]*corev1.Node) {
			nodes = append(nodes, n.DeepCopy())
		}
	}
	return nodes, nil
}

func readNodes(name string) (nodes []*corev1.Node, err error) {
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
	return nodes, nil
}

// Published holds the objects of pools of nodes whose drivers publish the named files of slices.
func Published(nodes, published []string) (pools.Source, error) {
	s := Scenario{SliceFiles: published}
	if err := s.readSlices(); err != nil {
		return pools.Source{}, err
	}
	var err error
	s.Nodes, err = Nodes(nodes...)
	return s.Source(), err
}

// Tried holds the objects of pools of the block "text tried on TEXT" of a page: "no nodes", or names of files of nodes, and after
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

// Source holds the objects from which the pools of the case are read.
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
			policy, err := pools.ReadClusterPolicy(raw)
			if err != nil {
				return pools.Runtimes{}, err
			}
			operator = policy.Operator()
		default:
			return pools.Runtimes{}, fmt.Errorf("kind %q: accepted: RuntimeClass, ClusterPolicy", class.Kind)
		}
	}
	return pools.RuntimesOf(classes, operator), nil
}
