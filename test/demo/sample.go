package main

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
)

//go:embed pods/*.yaml policies/*.yaml node/*.yaml
var files embed.FS

// Namespaces of the samples.
const defaultNamespace = "research"

func namespaces() []string {
	return []string{defaultNamespace, "notebooks", "inference", "sandbox", "students", "plain", "claims"}
}

// namespacesOf are those of the samples, and those that the user's pods name beside them.
func namespacesOf(pods []sample) []string {
	all := namespaces()
	for _, p := range pods {
		if !slices.Contains(all, p.namespace) {
			all = append(all, p.namespace)
		}
	}
	return all
}

// policyDocuments are the samples' policies by their names.
func policyDocuments() (map[string][]byte, error) {
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

// nodeFiles are the kinds of nodes that the samples meet.
func nodeFiles() []string {
	return []string{"a100-mig-mixed", "l4-timeslicing-renamed", "t4-plain-old-driver", "h100-host-daemon", "h100-mps-plugin"}
}

// sample is a pod to create, with its file's description.
type sample struct {
	file      string
	title     string
	namespace string
	expect    string // "mutated STRATEGY", "denied RULE", "unchanged"; empty: nothing is expected
	text      string // the pod as its author wrote it, without the comments
	pod       *unstructured.Unstructured
}

// samples reads the built-in pods, or the user's own.
func samples(own string) ([]sample, error) {
	if own != "" {
		return ownSamples(own)
	}
	names, err := fs.Glob(files, "pods/*.yaml")
	if err != nil {
		return nil, err
	}
	var all []sample
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
func ownSamples(file string) ([]sample, error) {
	var all []sample
	for _, d := range (&manifest.Reader{Stdin: os.Stdin}).Documents([]string{file}, manifest.MaxManifest) {
		objects, problems := d.Objects()
		for _, p := range problems {
			return nil, p
		}
		for _, o := range objects {
			pods, err := podsOf(o)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o, err)
			}
			if len(pods) == 0 && o.RunsPods() {
				fmt.Fprintf(os.Stderr, "%s: its pods are created by a controller, from no template in it: not judged\n", o)
			}
			for i, raw := range pods {
				s := sample{file: file, title: o.String(), namespace: cmp.Or(o.Namespace, defaultNamespace), pod: &unstructured.Unstructured{}}
				if err := s.pod.UnmarshalJSON(raw); err != nil {
					return nil, fmt.Errorf("%s: %w", o, err)
				}
				name := o.Name
				if len(pods) > 1 {
					name = fmt.Sprintf("%s-%d", o.Name, i+1)
				}
				s.pod.SetNamespace(s.namespace)
				s.pod.SetName(cmp.Or(s.pod.GetName(), name))
				if problem := manifest.LabelProblem(s.pod.GetLabels()); problem != "" {
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

// podsOf are an object's pods: itself, or those that its controller would create, one for each of its templates.
func podsOf(o manifest.Object) (pods []json.RawMessage, err error) {
	if o.Kind == "Pod" {
		return []json.RawMessage{o.Raw}, nil
	}
	templates, err := manifest.Templates(o)
	if err != nil {
		return nil, err
	}
	for _, t := range templates {
		pod, err := t.Pod(o)
		if err != nil {
			return nil, err
		}
		pods = append(pods, pod)
	}
	return pods, nil
}

func readSample(file string, b []byte) (sample, error) {
	s := sample{file: file, title: file, pod: &unstructured.Unstructured{}}
	var text strings.Builder
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		line := lines.Text()
		comment, isComment := strings.CutPrefix(line, "# ")
		switch key, value, _ := strings.Cut(comment, ": "); {
		case isComment && key == "namespace":
			s.namespace = value
		case isComment && key == "expect":
			s.expect = value
		case isComment && s.title == file && text.Len() == 0:
			s.title = comment
		default:
			text.WriteString(line + "\n")
		}
	}
	s.text = text.String()
	if err := yaml.Unmarshal(b, &s.pod.Object); err != nil {
		return s, fmt.Errorf("read %s: %w", file, err)
	}
	s.namespace = cmp.Or(s.namespace, s.pod.GetNamespace(), defaultNamespace)
	s.pod.SetNamespace(s.namespace)
	return s, nil
}
