package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/demo"
	"github.com/gpuslice/gpuslice/test/install"
)

// run shows the outcome of sample pods on an API server without a node.
func run(ctx context.Context, o options, stdout, stderr io.Writer) error {
	pods, err := demo.Samples(o.Pod)
	if err != nil {
		return err
	}
	bin, err := cluster.Build(ctx, stderr, cluster.ControlPlane()...)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gpuslice-demo-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(dir)
	step := func(format string, args ...any) { fmt.Fprintf(stderr, "--> "+format+"\n", args...) }

	step("building the webhook (the first time: two minutes)")
	binary, err := install.Binary(ctx, dir, "cmd/webhook")
	if err != nil {
		return err
	}
	step("starting etcd and kube-apiserver")
	server, err := start(ctx, bin)
	if err != nil {
		return err
	}
	defer server.Stop()
	step("installing gpuslice: its manifests, and its webhook beside the API server (there is no node for its Deployment)")
	i, err := installed(ctx, server, binary, dir, pods)
	if err != nil {
		return err
	}
	defer i.Stop()
	step("creating pods; they stay Pending: there are nodes, but no scheduler and no kubelet")
	unexpected, err := show(ctx, i, pods, o.Verbose, stdout)
	if err != nil {
		return err
	}
	if o.keep {
		return keep(ctx, server, dir, stdout, unexpected)
	}
	return demo.Unexpected(unexpected)
}

func start(ctx context.Context, bin cluster.Bin) (*cluster.APIServer, error) {
	ctx, cancel := context.WithTimeout(ctx, demo.Within)
	defer cancel()
	return cluster.StartAPIServer(ctx, cluster.Options{Bin: bin})
}

// installed puts gpuslice, the policies, the nodes and the namespaces on the server.
func installed(ctx context.Context, server *cluster.APIServer, binary, dir string, pods []demo.Sample) (*install.Installation, error) {
	ctx, cancel := context.WithTimeout(ctx, demo.Within)
	defer cancel()
	i, err := install.New(ctx, server, binary, dir)
	if err != nil {
		return nil, err
	}
	if err := populate(ctx, i, pods); err != nil {
		i.Stop()
		return nil, err
	}
	return i, nil
}

func populate(ctx context.Context, i *install.Installation, pods []demo.Sample) error {
	for _, name := range demo.Namespaces(pods) {
		if err := i.Server.Namespace(ctx, name, nil); err != nil {
			return err
		}
	}
	documents, err := demo.Policies()
	if err != nil {
		return err
	}
	var defaults config.PoolsSpec
	for name, b := range documents {
		if err := i.Policy(ctx, name, b); err != nil {
			return err
		}
		if p, problems := config.Parse(name, b); len(problems) > 0 {
			return problems.ToAggregate()
		} else if p.Namespaces == nil {
			defaults = p.Pools
		}
	}
	source, err := demo.Offers()
	if err != nil {
		return err
	}
	if err := i.Nodes(ctx, source.Nodes...); err != nil {
		return err
	}
	if err := i.Devices(ctx, source); err != nil {
		return err
	}
	var known []string
	for _, p := range source.Pools(defaults, nil) {
		known = append(known, p.Name)
	}
	return i.Settle(ctx, known...)
}

// keep leaves the server up until the user ends it.
func keep(ctx context.Context, server *cluster.APIServer, dir string, stdout io.Writer, unexpected int) error {
	command, err := install.Binary(ctx, dir, "cmd/gpuslice")
	if err != nil {
		return err
	}
	programs, err := writePrograms(server, dir, command, "")
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, `
The API server stays up, without a node: pods stay Pending. In another terminal:
  export KUBECONFIG=%s
  export PATH=%s:$PATH
  kubectl get pods -A
  kubectl get pod memory -n research -o yaml
  kubectl get configmaps -n gpuslice-system -l gpuslice.dev/policy=true
Ctrl-C ends it and leaves nothing behind.
`, server.Kubeconfig, programs)
	<-ctx.Done()
	return demo.Unexpected(unexpected)
}
