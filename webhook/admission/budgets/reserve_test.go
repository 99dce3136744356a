package budgets

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/ledger"
)

// oneQuota is a Source with the same quota in each namespace.
type oneQuota NamespaceQuota

func (q oneQuota) For(policies.Input) NamespaceQuota { return NamespaceQuota(q) }

// slicesAndMemory is the quota of team-a, and that of one of its classes.
func slicesAndMemory() oneQuota {
	four, one, memory := int64(4), int64(1), api.MiB(64<<10)
	return oneQuota{Budget: ledger.Budget{Key: "namespace/team-a", Namespaces: []string{"team-a"}}, Limits: quota.Quota{Limits: []quota.Limit{
		{Name: "team-a", Limits: quota.Limits{Memory: &memory, Slices: &four}},
		{Name: "team-a (class small)", Scope: quota.Scope{Class: "small"}, Limits: quota.Limits{Slices: &one}},
	}}}
}

// heldState is a ledger of team-a with 12Gi in use and one slice more reserved.
func heldState() ledger.State {
	return ledger.State{Namespaces: []string{"team-a"},
		Base: []quota.Holding{{Namespace: "team-a", Charge: quota.Charge{Memory: 12 << 10, Slices: 1}}},
		Reservations: []ledger.Reservation{
			{PodUID: "1", Name: "p", Holding: quota.Holding{Namespace: "team-a", Charge: quota.Charge{Slices: 1}}},
		}}
}

// oneGPU is a pod for one GPU, in a namespace under a transparent policy, beside a pool of shares.
func oneGPU(t *testing.T, policy string) policies.Input {
	t.Helper()
	p, problems := config.Parse("team",
		[]byte("apiVersion: gpuslice.dev/v1\nmode: transparent\nstrategies: [time-slicing]\ndefaultSlice: {memory: 1Gi}\n"+policy))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	one := corev1.ResourceList{api.ResourceGPU: resource.MustParse("1")}
	return policies.Input{Policy: p, Namespace: api.Namespace{Name: "team-a"},
		Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "train"}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "i", Resources: corev1.ResourceRequirements{Limits: one, Requests: one}}}}},
		Pools: []pools.Pool{{Name: "l4", Site: "l4", Resource: "nvidia.com/gpu.shared", Strategy: "time-slicing",
			DeviceMemory: 23034, Reserve: 692, Replicas: 4}}}
}

func TestCheckerDryRun(t *testing.T) {
	t.Parallel()
	const stand = "quota team-a: memory 12Gi of 64Gi used; slices 1 of 4 used, 1 reserved"
	admitted, busy := ledger.Answer{Decision: ledger.Admitted}, ledger.Answer{Decision: ledger.Busy, Reason: "busy"}
	unchecked := []string{"the quota was not checked: busy"}
	for name, c := range map[string]struct {
		policy string
		dry    bool
		state  ledger.State
		answer ledger.Answer
		want   []string
	}{
		"a dry run":                       {"", true, heldState(), admitted, []string{stand}},
		"a create":                        {"", false, heldState(), admitted, nil},
		"a dry run under warn":            {"enforcementMode: warn\n", true, heldState(), admitted, []string{stand}},
		"a dry run under audit":           {"enforcementMode: audit\n", true, heldState(), admitted, nil},
		"a create under audit":            {"enforcementMode: audit\n", false, heldState(), admitted, nil},
		"a ledger that has counted none":  {"", true, ledger.State{}, admitted, nil},
		"a ledger that cannot be read":    {"enforcementMode: warn\n", true, heldState(), busy, unchecked},
		"a create that cannot be counted": {"enforcementMode: audit\n", false, heldState(), busy, unchecked},
	} {
		in := oneGPU(t, c.policy)
		given := &promise.Promise{Namespace: "team-a", Charge: quota.Charge{Memory: 1024, Slices: 1}}
		checker := Checker{Reserver: &ledgerStub{answer: c.answer, state: c.state}, Budgets: slicesAndMemory(), Metrics: metrics.New("test")}
		d, again := checker.Reserve(t.Context(), Pod{Input: in, Promise: given, DryRun: c.dry}, policies.Decision{})
		if again != nil || !slices.Equal(d.Warnings, c.want) {
			t.Errorf("%s: %q, asked again: %v", name, d.Warnings, again != nil)
		}
	}
}

// TestTryAgain: clients wait for a second by themselves, and return the error where it would be longer.
func TestTryAgain(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]struct {
		seconds int32
		words   string
	}{
		0:                                  {1, "; try again"},
		time.Second:                        {1, "; try again"},
		time.Second + 500*time.Millisecond: {0, "; try again in 2s"},
		30 * time.Second:                   {0, "; try again in 30s"},
	} {
		busy := &ledgerStub{answer: ledger.Answer{Decision: ledger.Busy, Reason: "busy", RetryAfter: after}}
		checker := Checker{Reserver: busy, Budgets: slicesAndMemory(), Metrics: metrics.New("test")}
		_, again := checker.Reserve(t.Context(), Pod{Input: oneGPU(t, "")}, policies.Decision{})
		if again == nil || again.Denial.RetryAfterSeconds != want.seconds || !strings.HasSuffix(again.Denial.Message, "busy"+want.words) {
			t.Errorf("after %s: %+v", after, again)
		}
	}
}

// TestReserveDeadline: the answer is back before the API server stops waiting for it.
func TestReserveDeadline(t *testing.T) {
	for patience, want := range map[time.Duration]time.Duration{0: 0,
		5 * time.Second: 5*time.Second - answerMargin, time.Hour: ledger.DefaultTimeout} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if patience > 0 {
				ctx, cancel = context.WithTimeout(ctx, patience)
			}
			defer cancel()
			stub := &ledgerStub{answer: ledger.Answer{Decision: ledger.Admitted}}
			checker := Checker{Reserver: stub, Budgets: slicesAndMemory(), Metrics: metrics.New("test")}
			checker.Reserve(ctx, Pod{Input: oneGPU(t, "")}, policies.Decision{})
			if got := stub.requests[0].Deadline; got.IsZero() != (want == 0) || want > 0 && time.Until(got) != want {
				t.Errorf("of %s: %s, want %s", patience, time.Until(got), want)
			}
		})
	}
}

// TestHoldingOfNewPods: a pod without a Promise takes whole devices, except in audit mode, where it would have a slice.
func TestHoldingOfNewPods(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]quota.Charge{
		"":                         {GPUs: 1},
		"enforcementMode: warn\n":  {GPUs: 1},
		"enforcementMode: audit\n": {Slices: 1},
	} {
		if got := holdingOf(oneGPU(t, policy), nil).Charge; got.GPUs != want.GPUs || got.Slices != want.Slices {
			t.Errorf("%q: %+v, want %+v", policy, got, want)
		}
	}
}

func TestAnswerReport(t *testing.T) {
	t.Parallel()
	const text = "quota team-a: memory 12Gi of 64Gi used; slices 1 of 4 used, 1 reserved; quota team-a (class small): slices 0 of 1 used"
	broken := errors.New("no answer")
	for name, c := range map[string]struct {
		kind, want string
		source     oneQuota
		err        error
		causes     int
	}{
		"quota":                          {ReportQuota, text, slicesAndMemory(), nil, 1},
		"quota where nothing is limited": {ReportQuota, `sets namespace "team-a" no quota`, oneQuota{}, broken, 1},
		"quota that cannot be read":      {ReportQuota, "the quota cannot be read now: no answer", slicesAndMemory(), broken, 0},
		"policy":                         {ReportPolicy, `policy team governs namespace "team-a"`, oneQuota{}, broken, 1},
		"another":                        {"pods", `there is no report "pods"`, slicesAndMemory(), nil, 0},
	} {
		in := oneGPU(t, "")
		in.Pod.Annotations = map[string]string{api.AnnotationReport: c.kind}
		checker := &Checker{Reserver: &ledgerStub{state: heldState(), err: c.err}, Budgets: c.source}
		answer, fault := checker.AnswerReport(context.Background(), in)
		if fault != nil || answer.Denial == nil || !strings.Contains(answer.Denial.Message, c.want) || len(answer.Denial.Causes) != c.causes {
			t.Errorf("%s: %+v, %v", name, answer.Denial, fault)
		}
		if c.want == text && answer.Denial.Message != text {
			t.Errorf("%s: %s", name, answer.Denial.Message)
		}
	}
}
