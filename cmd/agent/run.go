package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/gpuslice/gpuslice/cmd/agent/deviceplugin"
	"github.com/gpuslice/gpuslice/cmd/agent/nodepods"
	"github.com/gpuslice/gpuslice/cmd/component"
	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/gpu"
	"github.com/gpuslice/gpuslice/guard/lease"
	"github.com/gpuslice/gpuslice/guard/limits"
	"github.com/gpuslice/gpuslice/guard/mps"
	"github.com/gpuslice/gpuslice/guard/node"
	"github.com/gpuslice/gpuslice/guard/proc"
	"github.com/gpuslice/gpuslice/guard/status"
)

// guardedPods is how many pods of a node the agent guards: more than any kubelet runs.
const guardedPods = 1024

// run enforces the slices of the node's pods until ctx is done.
func run(ctx context.Context, o options, stderr io.Writer) error {
	config, err := component.FindServer(o.kubeconfig, "gpuslice-agent/"+version, 5, 20) // Events and a Lease
	if err != nil {
		return err
	}
	client, err := component.Connect(config)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return enforce(ctx, o, client, l, stderr)
}

// enforce is run with a client and a port that are open.
func enforce(ctx context.Context, o options, client kubernetes.Interface, l net.Listener, stderr io.Writer) error {
	log, err := newLogger(o, stderr)
	if err != nil {
		return err
	}
	processes, err := proc.OpenNode(o.procDir)
	if err != nil {
		return err
	}
	known := nodepods.New(client, o.node, log)
	driver := gpu.New(gpu.Options{Library: o.nvmlLibrary, NodePIDs: true, Now: processes.Now})
	recorder, samples := status.New(o.dryRunIn(known.Promise)), newSamples()
	h := status.Health{Recorder: recorder, Synced: known.Synced, Began: time.Now()}

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	recording := newEventWriter(klog.NewContext(ctx, logr.FromSlogHandler(log.Handler())), client, o.node)
	defer recording.Close()
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop(nil)
	beside.Go(func() { known.Run(ctx) })
	beside.Go(func() { stop(serve(ctx, l, handler(h, samples))) })
	enforces := func() bool { return !o.dryRun && h.Ready() == nil }
	beside.Go(func() {
		holder := leaseHolder{client: client, namespace: o.namespace, node: o.node, enforces: enforces,
			report: func() lease.Report { return recorder.Report(time.Now()) }, log: log}
		holder.run(ctx)
	})
	beside.Go(func() {
		plugin := deviceplugin.Plugin{Folder: o.devicePlugins, Resource: limits.GuardedResource, Count: guardedPods, Offers: enforces, Log: log}
		plugin.Run(ctx)
	})
	reports := &reporter{log: log, events: recording, recorder: recorder, node: o.node, bystanders: node.Bystanders{Known: known.Bare}}
	use := &status.UseWatch{Recorder: recorder, Activities: driver.Activities, Notify: reports.Idle}
	beside.Go(func() { use.Run(ctx) })
	log.Info("started", "version", version, "node", o.node, "dryRun", o.dryRun)
	agent := &node.Agent{Node: processes, Pods: known, DryRun: o.dryRun, Idle: use.Idle, Daemons: func() []mps.Daemon { return o.daemons() },
		Reader: timed{driver, samples, func() {
			if ended := driver.Ended(); ended != nil {
				stop(ended)
			}
		}},
		Reporter: reports}
	agent.Run(ctx)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	log.Info("stopped")
	return nil
}

// newLogger joins the loggers of this command and client-go.
func newLogger(o options, w io.Writer) (*slog.Logger, error) {
	level, err := o.level()
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level}))
	klog.SetLogger(logr.FromSlogHandler(log.Handler()))
	return log, nil
}

// daemons returns the node's MPS daemons at present.
func (o *options) daemons() []mps.Daemon {
	var found []mps.Daemon
	for _, pipe := range mps.PipeDirectories(o.mpsDirectories) {
		found = append(found, mps.Control{Program: o.mpsControl, PipeDirectory: pipe})
	}
	return found
}

// dryRunIn returns promises of which nothing is enforced in a dry run.
func (o *options) dryRunIn(promised func(uid string) (node.Pod, bool)) func(uid string) (node.Pod, bool) {
	return func(uid string) (node.Pod, bool) {
		p, found := promised(uid)
		p.Limits.DryRun = p.Limits.DryRun || o.dryRun
		return p, found
	}
}

// timed is a reader whose readings are timed.
type timed struct {
	node.Reader
	durations prometheus.Observer
	after     func() // is called after each reading
}

// Read implements node.Reader.
func (t timed) Read(ctx context.Context, maxAge time.Duration) ([]guard.Device, error) {
	began := time.Now()
	devices, err := t.Reader.Read(ctx, maxAge)
	t.durations.Observe(time.Since(began).Seconds())
	t.after()
	return devices, err
}
