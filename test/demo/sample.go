package demo

import (
	"bufio"
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

//go:embed pods/*.yaml policies/*.yaml node/*.yaml
var files embed.FS

// defaultNamespace is that of samples which name none.
const defaultNamespace = "research"

func sampleNamespaces() []string {
	return []string{defaultNamespace, "notebooks", "inference", "sandbox", "students", "plain", "claims"}
}

// Namespaces are those of the samples, and those that the user's pods name beside them.
func Namespaces(pods []Sample) []string {
	all := sampleNamespaces()
	for _, p := range pods {
		if !slices.Contains(all, p.Namespace) {
			all = append(all, p.Namespace)
		}
	}
	return all
}

// Policies are the samples' policies by their names.
func Policies() (map[string][]byte, error) {
	entries, err := files.ReadDir("policies")
	if err != nil {
		return nil, err
	}
	all := map[string][]byte{}
	for _, e := range entries {
		if all[strings.TrimSuffix(e.Name(), path.Ext(e.Name()))], err = files.ReadFile("policies/" + e.Name()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// Offers is what the samples meet: kinds of nodes, and one whose driver shares out the memory of its devices.
func Offers() (pools.Source, error) {
	source, err := sharedByMemory()
	if err != nil {
		return source, err
	}
	nodes, err := scenarios.Nodes("a100-mig-mixed", "l4-timeslicing-renamed", "t4-plain-old-driver", "h100-host-daemon", "h100-mps-plugin")
	source.Nodes = append(nodes, source.Nodes...)
	return source, err
}

// Sample is a pod to create, with its file's description.
type Sample struct {
	Title     string
	Namespace string
	Expect    string // "mutated STRATEGY", "denied RULE", "unchanged"; empty: nothing is expected
	Template  string // where the pod stands in an object with several: "spec.workerGroupSpecs[0].template"; empty: elsewhere
	Pod       *unstructured.Unstructured
}

// Samples reads the built-in pods, or the user's own.
func Samples(own string) ([]Sample, error) {
	if own != "" {
		return ownSamples(own)
	}
	names, err := fs.Glob(files, "pods/*.yaml")
	if err != nil {
		return nil, err
	}
	var all []Sample
	for _, name := range names {
		b, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		s, err := readSample(path.Base(name), b)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// ownSamples reads a user's documents: pods, and the pods that their workloads would create.
func ownSamples(file string) ([]Sample, error) {
	var all []Sample
	for _, d := range (&manifest.Reader{Stdin: os.Stdin}).Documents([]string{file}, manifest.MaxManifest) {
		objects, problems := d.Objects()
		for _, p := range problems {
			return nil, p
		}
		for _, o := range objects {
			pods, places, err := podsOf(o)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o, err)
			}
			if len(pods) == 0 && o.RunsPods() {
				fmt.Fprintf(os.Stderr, "%s: its pods are created by a controller, from no template in it: not judged\n", o)
			}
			for i, raw := range pods {
				s := Sample{Title: o.String(), Namespace: cmp.Or(o.Namespace, defaultNamespace), Pod: &unstructured.Unstructured{}}
				if err := s.Pod.UnmarshalJSON(raw); err != nil {
					return nil, fmt.Errorf("%s: %w", o, err)
				}
				name := o.Name
				if len(pods) > 1 {
					name, s.Template = fmt.Sprintf("%s-%d", o.Name, i+1), places[i]
				}
				s.Pod.SetNamespace(s.Namespace)
				s.Pod.SetName(cmp.Or(s.Pod.GetName(), name))
				if problem := manifest.LabelProblem(s.Pod.GetLabels()); problem != "" {
					return nil, fmt.Errorf("%s: Kubernetes denies it: %s", o, problem)
				}
				all = append(all, s)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("read %s: it holds no pod and no workload", file)
	}
	return all, nil
}

// podsOf are an object's pods: itself, or those that its controller would create, one for each of its templates, and where these stand.
func podsOf(o manifest.Object) (pods []json.RawMessage, places []string, err error) {
	if o.Kind == "Pod" {
		return []json.RawMessage{o.Raw}, []string{""}, nil
	}
	templates, err := manifest.Templates(o)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range templates {
		pod, err := t.Pod(o)
		if err != nil {
			return nil, nil, err
		}
		pods, places = append(pods, pod), append(places, t.Path())
	}
	return pods, places, nil
}

func readSample(file string, b []byte) (Sample, error) {
	s := Sample{Title: file, Pod: &unstructured.Unstructured{}}
	written := false // the pod has begun
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		line := lines.Text()
		comment, isComment := strings.CutPrefix(line, "# ")
		switch key, value, _ := strings.Cut(comment, ": "); {
		case isComment && key == "namespace":
			s.Namespace = value
		case isComment && key == "expect":
			s.Expect = value
		case isComment && s.Title == file && !written:
			s.Title = comment
		default:
			written = true
		}
	}
	if err := yaml.Unmarshal(b, &s.Pod.Object); err != nil {
		return s, fmt.Errorf("read %s: %w", file, err)
	}
	s.Namespace = cmp.Or(s.Namespace, s.Pod.GetNamespace(), defaultNamespace)
	s.Pod.SetNamespace(s.Namespace)
	return s, nil
}
