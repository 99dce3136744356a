package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/bypass"
	"github.com/gpuslice/gpuslice/webhook/claimtemplates"
	"github.com/gpuslice/gpuslice/webhook/closedclasses"
	"github.com/gpuslice/gpuslice/webhook/extendednames"
	"github.com/gpuslice/gpuslice/webhook/leader"
	"github.com/gpuslice/gpuslice/webhook/nativequota"
	"github.com/gpuslice/gpuslice/webhook/observe"
	"github.com/gpuslice/gpuslice/webhook/reports"
	"github.com/gpuslice/gpuslice/webhook/usage"
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

// leads reports whether this replica is the leader and knows what a leader needs: without keys and policies every running
// pod looks as if it had been created while no webhook answered.
func (s *Setup) leads() bool {
	return s.election.Leads() && s.keys.Ready() == nil && s.cluster.Ready() == nil
}

// makeRunnables makes what the leader runs. Its clients have rate limits of their own: a wave of pods must not keep state
// and certificates from being written.
func (s *Setup) makeRunnables() error {
	slow, err := s.connect(writerRate)
	if err != nil {
		return err
	}
	client, err := s.connect(observerRate)
	if err != nil {
		return err
	}
	forPods, err := s.connect(templatesRate)
	if err != nil {
		return err
	}
	writer := &nativequota.Writer{
		Client: slow, Quotas: s.cluster.ResourceQuotas(), Governed: s.cluster.Governed, Log: s.log.WithName("nativequota"),
	}
	claims := claimtemplates.New(claimtemplates.Options{
		Client: forPods, Templates: s.cluster.ClaimTemplates(), Governed: s.cluster.Governed, Log: s.log.WithName("claimtemplates"),
	})
	extended := &extendednames.Writer{
		Client: slow, Configurations: s.options.Validating, Names: s.cluster.ExtendedNames, Log: s.log.WithName("extendednames"),
	}
	closed := &closedclasses.Writer{Client: slow, Namespaces: s.cluster.ClosedClasses, Log: s.log.WithName("closedclasses")}
	keeper, err := bypass.New(bypass.Options{
		Client: client, Namespaces: s.cluster.Namespaces().Informer(), Registerer: s.metrics.Registerer(), Log: s.log.WithName("bypass"),
	})
	if err != nil {
		return err
	}
	s.runnables = []leader.Runnable{keeper.Run, writer.Run, extended.Run, closed.Run, claims.Run, s.quotaMetrics.Run}
	if s.options.AuditInterval > 0 {
		forAudit, err := s.connect(auditRate)
		if err != nil {
			return err
		}
		s.runnables = append(s.runnables, s.auditor(forAudit).Run)
	}
	if !s.options.Observe {
		return nil
	}
	observer, err := observe.New(observe.Options{
		Client: client, Namespace: s.options.Namespace, Nodes: s.cluster.Nodes(), Claims: s.cluster.Claim, Keys: s.keys.Keys, PodGone: s.podGone, Guards: s.cluster, Usage: s.usage(slow),
		Registerer: s.metrics.Registerer(), Log: s.log.WithName("observe"),
	})
	if err != nil {
		return err
	}
	s.runnables = append(s.runnables, observer.Run)
	return nil
}

// usage makes what counts what pods hold over time.
func (s *Setup) usage(client kubernetes.Interface) *usage.Recorder {
	return usage.New(usage.Options{
		Client: client, Namespace: s.options.Namespace, PodLabel: s.options.UsageLabel, KeepDays: s.options.UsageDays,
		Ready:     func() error { return errors.Join(s.keys.Ready(), s.cluster.Ready(), s.clock.Ready()) },
		PromiseOf: func(pod *corev1.Pod) *promise.Promise { return s.budgets.PromiseOf(s.keys.Keys(), pod) },
		PoolOf:    s.cluster.PoolOf, WithoutSlice: s.budgets.WithoutSlice,
		Now: func() time.Time { earliest, _ := s.clock.Bounds(); return earliest },
		Log: s.log.WithName("usage"),
	})
}

// auditor makes what writes at intervals what enforce would do.
func (s *Setup) auditor(client kubernetes.Interface) *reports.Auditor {
	return reports.NewAuditor(reports.Options{
		Client: client, Interval: s.options.AuditInterval, Ready: s.cluster.Ready, Configurations: s.options.Mutating, Governed: s.cluster.Governed,
		InputOf: func(ctx context.Context, pod *corev1.Pod) (policies.Input, error) {
			in, err := s.cluster.Input(ctx, pod.Namespace)
			in.Pod, in.Claims = pod, s.cluster.ClaimSpecs(ctx, pod.Namespace, pod)
			return in, err
		},
		QuotaOf: func(in policies.Input) quota.Quota { return s.budgets.For(in).Limits },
		Log:     s.log.WithName("audit"),
	})
}
