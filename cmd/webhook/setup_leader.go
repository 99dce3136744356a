package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/leader"
	"github.com/gpuslice/gpuslice/webhook/leader/bypass"
	"github.com/gpuslice/gpuslice/webhook/leader/claimtemplates"
	"github.com/gpuslice/gpuslice/webhook/leader/closedclasses"
	"github.com/gpuslice/gpuslice/webhook/leader/extendednames"
	"github.com/gpuslice/gpuslice/webhook/leader/nodecondition"
	"github.com/gpuslice/gpuslice/webhook/leader/nodelease"
	"github.com/gpuslice/gpuslice/webhook/leader/observe"
	"github.com/gpuslice/gpuslice/webhook/leader/peaks"
	"github.com/gpuslice/gpuslice/webhook/leader/podcache"
	"github.com/gpuslice/gpuslice/webhook/leader/usage"
)

// makeElection makes this replica's part in choosing the leader.
func (s *Setup) makeElection() error {
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name this replica: %w", err)
	}
	s.election = &leader.Election{
		Client: s.client, Namespace: s.options.Namespace, Identity: host + "_" + rand.Text(), Log: s.log.WithName("leader"),
	}
	return nil
}

// leads reports whether this replica is the leader and has a leader's inputs: without keys and policies every running
// pod looks as if it had been created while no webhook answered.
func (s *Setup) leads() bool {
	return s.election.Leads() && s.keys.Ready() == nil && s.cluster.Ready() == nil
}

// makeRunnables makes the leader's runnables. Their clients have rate limits of their own: a wave of pods must not keep
// state and certificates from being written.
func (s *Setup) makeRunnables() error {
	slow, err := s.connect(writerRate)
	if err != nil {
		return err
	}
	client, err := s.connect(observerRate)
	if err != nil {
		return err
	}
	closing, err := s.connect(closingRate)
	if err != nil {
		return err
	}
	extended := extendednames.New(slow, s.options.Validating, s.cluster.ExtendedNames, s.log.WithName("extendednames"))
	closed := closedclasses.New(closing, s.cluster.ClosedClasses, s.log.WithName("closedclasses"))
	keeper, err := bypass.New(bypass.Options{
		Client: client, Namespaces: s.cluster.Namespaces().Informer(), Registerer: s.metrics.Registerer(), Log: s.log.WithName("bypass"),
	})
	if err != nil {
		return err
	}
	s.runnables = []leader.Runnable{keeper.Run, extended.Run, closed.Run, s.quotaMetrics.Run}
	return s.makePodRunnables(client, s.usage(slow), s.peaks(slow))
}

// makePodRunnables makes the leader's runnables on pods. They share one watch of pods, which lasts as long as one lead.
func (s *Setup) makePodRunnables(client kubernetes.Interface, counter *usage.Recorder, recorder *peaks.Recorder) error {
	forPods, err := s.connect(templatesRate)
	if err != nil {
		return err
	}
	templates := claimtemplates.New(claimtemplates.Options{
		Client: forPods, Templates: s.cluster.ClaimTemplates(), Governed: s.cluster.Governed, Log: s.log.WithName("claimtemplates"),
	})
	var observer *observe.Controller
	if s.options.Observe {
		observer, err = observe.New(observe.Options{Client: client, Nodes: s.cluster.Nodes(),
			Claims: s.cluster.Claim, Keys: s.keys.Keys, Guards: s.cluster,
			Registerer: s.metrics.Registerer(), Log: s.log.WithName("observe")})
		if err != nil {
			return err
		}
	}
	s.beginLead = func() ([]leader.Runnable, error) {
		watch, err := s.watchPods(client)
		if err != nil {
			return nil, err
		}
		conditions := &nodecondition.Writer{Client: client, Nodes: s.cluster.Nodes(), Agents: watch.Agents, Log: s.log.WithName("nodecondition")}
		all := append(slices.Clone(s.runnables), conditions.Run,
			func(ctx context.Context) error { watch.Pods.RunWithContext(ctx); return nil },
			func(ctx context.Context) error { watch.Agents.Run(ctx); return nil },
			func(ctx context.Context) error { return templates.Run(ctx, watch.Pods) },
			func(ctx context.Context) error {
				return counter.Run(ctx, watch.Pods, watch.Agents.Used)
			},
			func(ctx context.Context) error {
				return recorder.Run(ctx, watch.Pods, watch.Agents.Used)
			})
		if observer != nil {
			all = append(all, func(ctx context.Context) error { return observer.Run(ctx, watch) })
		}
		return all, nil
	}
	return nil
}

// watchPods prepares the watch of pods and of the agents of their nodes.
func (s *Setup) watchPods(client kubernetes.Interface) (observe.Watch, error) {
	agents, err := nodelease.Follow(client, s.options.Namespace)
	if err != nil {
		return observe.Watch{}, err
	}
	full := func(kind, namespace string) {
		message := "some pods of a namespace are not observed or counted, since they are too many or too large"
		if kind == podcache.FullTemplates {
			message = "some pods of a namespace get no claim templates, since they are too many or too large"
		}
		s.log.Info(message, "object", "Namespace "+namespace)
	}
	all := podcache.NewInformer(podcache.Options{Client: client, Label: s.options.UsageLabel, Templates: claimtemplates.NamedBy, Full: full})
	if _, err := all.AddEventHandler(podcache.OnGone(s.podGone)); err != nil {
		return observe.Watch{}, fmt.Errorf("watch pods: %w", err)
	}
	return observe.Watch{Pods: all, Agents: agents}, nil
}

// usage makes the recorder of pods' holdings over time.
func (s *Setup) usage(client kubernetes.Interface) *usage.Recorder {
	return &usage.Recorder{
		Client: client, Namespace: s.options.Namespace, PodLabel: s.options.UsageLabel, KeepDays: s.options.UsageDays,
		Ready:     func() error { return errors.Join(s.keys.Ready(), s.cluster.Ready(), s.clock.Ready()) },
		PromiseOf: func(pod *corev1.Pod) *promise.Promise { return s.budgets.PromiseOf(s.keys.Keys(), pod) },
		PoolOf:    s.cluster.PoolOf, WithoutSlice: s.budgets.WithoutSlice,
		Now: func() time.Time { earliest, _ := s.clock.Bounds(); return earliest },
		Log: s.log.WithName("usage"),
	}
}

// peaks makes the recorder of the memory that workloads use, for recommendations.
func (s *Setup) peaks(client kubernetes.Interface) *peaks.Recorder {
	return &peaks.Recorder{
		Client: client, Namespace: s.options.Namespace, DeviceOf: s.cluster.DeviceOf,
		Ready:     func() error { return errors.Join(s.keys.Ready(), s.cluster.Ready(), s.clock.Ready()) },
		PromiseOf: func(pod *corev1.Pod) *promise.Promise { return s.budgets.PromiseOf(s.keys.Keys(), pod) },
		Now:       func() time.Time { earliest, _ := s.clock.Bounds(); return earliest },
		Log:       s.log.WithName("peaks"),
	}
}
