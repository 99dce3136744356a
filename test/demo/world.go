package main

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/test/memoryapi"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// world is a webhook's knowledge: the objects of its API server.
type world struct {
	policies   map[string][]byte
	nodes      []*corev1.Node
	namespaces []string
	published  pools.Source // ResourceSlices and DeviceClasses
}

// asked is a webhook that runs beside an API server in memory.
type asked struct {
	*install.Asker
	server  *memoryapi.Server
	process *install.Process
}

func (a *asked) stop() {
	a.process.Stop()
	a.server.Stop()
}

// ask starts a webhook in a world, and waits until it knows it.
func ask(ctx context.Context, webhook, dir string, w world) (*asked, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	server, err := memoryapi.Start()
	if err != nil {
		return nil, err
	}
	a := &asked{server: server}
	if err := w.put(server); err != nil {
		server.Stop()
		return nil, err
	}
	if a.process, err = install.InMemory(ctx, server, webhook, dir); err != nil {
		server.Stop()
		return nil, err
	}
	err = a.process.WaitState(ctx, "see the policies and nodes", func(s install.State) bool {
		return len(s.Policies) == len(w.policies) && s.Nodes == len(w.nodes) && w.knownTo(s) &&
			!slices.ContainsFunc(s.Policies, func(p install.PolicyState) bool { return p.Error != "" })
	})
	if err == nil {
		a.Asker, err = install.NewAsker(ctx, server.Config, a.process)
	}
	if err != nil {
		a.stop()
		return nil, err
	}
	return a, nil
}

func (w world) put(server *memoryapi.Server) error {
	for _, name := range w.namespaces {
		namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		namespace.SetName(name)
		namespace.SetLabels(map[string]string{corev1.LabelMetadataName: name})
		if err := server.Put(namespace); err != nil {
			return err
		}
	}
	var objects []runtime.Object
	for name, document := range w.policies {
		objects = append(objects, install.PolicyObject(name, document))
	}
	for _, n := range w.nodes {
		n = n.DeepCopy()
		n.APIVersion, n.Kind = "v1", "Node"
		objects = append(objects, n)
	}
	for _, c := range w.published.Classes {
		objects = append(objects, c)
	}
	for _, o := range w.published.Slices {
		objects = append(objects, o)
	}
	for _, o := range objects {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return err
		}
		if err := server.Put(&unstructured.Unstructured{Object: fields}); err != nil {
			return err
		}
	}
	return nil
}

// knownTo reports whether a webhook has the pools of what drivers publish.
func (w world) knownTo(s install.State) bool {
	for _, p := range w.published.Pools(config.PoolsSpec{}, nil) {
		if !slices.ContainsFunc(s.Pools, func(known install.PoolState) bool { return known.Name == p.Name }) {
			return false
		}
	}
	return true
}

// storyWorld is one node with one GPU, and the namespaces of both pods.
func storyWorld() (world, error) {
	policy, err := files.ReadFile("node/policy.yaml")
	if err != nil {
		return world{}, err
	}
	text, err := files.ReadFile("node/a100.yaml")
	if err != nil {
		return world{}, err
	}
	var node corev1.Node
	if err := yaml.UnmarshalStrict(text, &node); err != nil {
		return world{}, err
	}
	return world{policies: map[string][]byte{demoPolicy: policy}, nodes: []*corev1.Node{&node},
		namespaces: []string{api.SystemNamespace, quiet().namespace, hog().namespace}}, nil
}

// sampleWorld is the nodes, policies and namespaces of the samples.
func sampleWorld(pods []sample) (w world, err error) {
	if w.policies, err = policyDocuments(); err != nil {
		return w, err
	}
	if w.nodes, err = scenarios.Nodes(nodeFiles()...); err != nil {
		return w, err
	}
	if w.published, err = sharedByMemory(); err != nil {
		return w, err
	}
	w.nodes = append(w.nodes, w.published.Nodes...)
	w.namespaces = append(namespacesOf(pods), api.SystemNamespace)
	return w, nil
}
