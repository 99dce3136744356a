package scenarios

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/rawpod"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

// Input is the input of the core.
func (s Scenario) Input() (policies.Input, error) {
	raw, violation, err := rawpod.Decode(s.Pod)
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

// Governed is the input of the core, without the pod. PolicyError is set where the document is broken, as the
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
	in.Resources = s.Source().Resources()
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
