package main

import (
	"bufio"
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

//go:embed pods/*.yaml policies/*.yaml node/*.yaml
var files embed.FS

// Namespaces of the samples.
const defaultNamespace = "research"

func namespaces() []string {
	return []string{defaultNamespace, "notebooks", "inference", "sandbox", "students", "plain"}
}

// nodeFiles are the kinds of nodes that the samples meet.
func nodeFiles() []string {
	return []string{"a100-mig-mixed", "l4-timeslicing-renamed", "t4-plain-old-driver", "h100-host-daemon", "h100-mps-plugin"}
}

// sample is a pod to create, with what its file says of it.
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
		b, err := os.ReadFile(own)
		if err != nil {
			return nil, fmt.Errorf("read your pod: %w", err)
		}
		s, err := readSample(path.Base(own), b)
		return []sample{s}, err
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
	if s.pod.GetKind() != "Pod" {
		return s, fmt.Errorf("read %s: it holds a %s; write one Pod", file, orNothing(s.pod.GetKind()))
	}
	if s.namespace == "" {
		s.namespace = s.pod.GetNamespace()
	}
	if s.namespace == "" {
		s.namespace = defaultNamespace
	}
	s.pod.SetNamespace(s.namespace)
	return s, nil
}

func orNothing(kind string) string {
	if kind == "" {
		return "document without a kind"
	}
	return kind
}
