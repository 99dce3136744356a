package plan

import (
	"math/rand/v2"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/accounting"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/quota"
	"github.com/gpuslice/gpuslice/policies/sizing"
	"github.com/gpuslice/gpuslice/policies/sizing/advice"
	"github.com/gpuslice/gpuslice/test/abuse"
)

// TestSizeFromHistoryWithinLimits draws recommendations and limits: no size is above a limit, nor below the smallest slice that the
// limits leave.
func TestSizeFromHistoryWithinLimits(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	some := func() quantity.MiB { return quantity.MiB(r.IntN(3) * r.IntN(20_000)) }
	for range 3000 {
		p, problems := config.Parse("a",
			[]byte("apiVersion: gpuslice.dev/v1\ndefaultSlice: {memoryLimit: 30Gi, fromHistory: {otherwise: 4Gi}}\n"))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		p.Limits.PerContainer, p.Limits.PerPod = quota.Charge{Memory: some()}, quota.Charge{Memory: some()}
		p.Limits.MinMemory, p.Limits.MaxLimitRequestRatio = some()/8, r.IntN(4)
		whole := some()
		p.Quota.Memory = &whole
		owner := advice.Owner{Kind: "Job", Name: "train"}
		key := advice.Container{Namespace: "a", Owner: owner, Container: "c"}
		rec := &advice.Recommendation{Container: key, Verdict: sizing.Right, Sizes: [len(advice.Coverages)]api.MiB{0, some(), 0}}
		in := &Input{Policy: p, Namespace: api.Namespace{Name: "a"}, Recommended: advice.Namespace{key: rec},
			Pod: &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: owner.Kind, Name: owner.Name, Controller: new(true)}}},
			}}
		c := api.ContainerRequest{Name: "c", GPUs: int64(1 + r.IntN(2))}
		got, sizedBy := defaultSlice(in, c)
		least := smallestSlice(p, c.GPUs)
		for _, most := range []quantity.MiB{p.Limits.PerContainer.Memory, p.Limits.PerPod.Memory, whole} {
			if most > 0 {
				least = min(least, most/quantity.MiB(c.GPUs))
				if got.Memory*quantity.MiB(c.GPUs) > most {
					t.Fatalf("%s of each of %d GPUs, where policy allows %s", got.Memory, c.GPUs, most)
				}
			}
		}
		if got.Memory < least || sizedBy == "" {
			t.Fatalf("%s is below the smallest slice %s (%q)", got.Memory, least, sizedBy)
		}
		if ratio := quantity.MiB(p.Limits.MaxLimitRequestRatio); ratio > 0 && got.MemoryLimit > got.Memory*ratio {
			t.Fatalf("a limit of %s for %s, where policy allows %d times as much", got.MemoryLimit, got.Memory, ratio)
		}
	}
	abuse.Report(t, abuse.Attempt{Threat: "A38", Attack: "any recommended size under a forged owner, with 3,000 policies",
		Outcome: abuse.Contained, Words: "each slice is within the policy's limits and quota"})
}

// TestSizesFromHistoryWithinPod draws containers and limits: sizes from the history exceed the limits of the pod together only where
// smallest slices would. Sizes that were requested stay, and so do all where nothing is exceeded.
func TestSizesFromHistoryWithinPod(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	held := 0
	for range 3000 {
		p := &config.Policy{}
		p.Limits.PerPod.Memory, p.Limits.MaxLimitRequestRatio = quantity.MiB(r.IntN(3)*r.IntN(40_000)), r.IntN(3)
		p.Limits.MinMemory = quantity.MiB(r.IntN(2) * r.IntN(3000))
		if whole := quantity.MiB(r.IntN(40_000)); whole%2 == 0 {
			p.Quota.Memory = &whole
		}
		claims := r.IntN(4) == 0
		var before []want
		inits := r.IntN(4)
		for i := range inits + 1 + r.IntN(4) {
			w := want{request: api.ContainerRequest{GPUs: int64(1 + r.IntN(2))},
				resolved: api.Size{Memory: quantity.MiB(historyStep * (4 + r.IntN(60))), MemoryLimit: 30 << 10},
				init:     i < inits, spec: &corev1.Container{}}
			w.sidecar = r.IntN(2) > 0 && w.init
			if r.IntN(3) > 0 {
				w.sizedBy = "history"
			}
			before = append(before, w)
		}
		peak := func(of func(*want) quantity.MiB, wants []want) quantity.MiB {
			var spans []accounting.Span
			for i := range wants {
				w := &wants[i]
				memory := of(w) * quantity.MiB(w.request.GPUs)
				spans = append(spans, accounting.Span{Charge: quota.Charge{Memory: memory}, Init: w.init && !claims, Sidecar: w.sidecar})
			}
			return accounting.Peak(spans).Memory
		}
		size := func(w *want) quantity.MiB { return w.resolved.Memory }
		least := func(w *want) quantity.MiB {
			if w.sizedBy == "" {
				return w.resolved.Memory
			}
			return min(smallestSlice(p, w.request.GPUs), w.resolved.Memory)
		}
		exceeded := false
		for _, most := range limitsOfPod(p) {
			exceeded = exceeded || most > 0 && peak(size, before) > most
		}
		wants := slices.Clone(before)
		shareWithinPod(p, wants, claims)
		for i, w := range wants {
			was := before[i]
			switch ratio := quantity.MiB(p.Limits.MaxLimitRequestRatio); {
			case was.sizedBy == "" || w.sizedBy == "history":
				if w.resolved != was.resolved {
					t.Fatalf("%+v became %+v", was.resolved, w.resolved)
				}
			case !exceeded || w.resolved.Memory < least(&was) || w.resolved.Memory >= was.resolved.Memory ||
				ratio > 0 && w.resolved.MemoryLimit > w.resolved.Memory*ratio:
				t.Fatalf("%+v became %+v, the smallest slice is %s", was.resolved, w.resolved, least(&was))
			default:
				held++
			}
		}
		for _, most := range limitsOfPod(p) {
			if got := peak(size, wants); most > 0 && got > max(most, peak(least, before)) {
				t.Fatalf("%s of %s, where smallest slices come to %s: %+v became %+v", got, most, peak(least, before), before, wants)
			}
		}
	}
	if held < 1000 {
		t.Errorf("%d sizes were held", held)
	}
}

// TestSharesWithinPod has what each container of a pod gets of its limit.
func TestSharesWithinPod(t *testing.T) {
	t.Parallel()
	of := func(gib quantity.MiB) want {
		return want{request: api.ContainerRequest{GPUs: 1}, resolved: api.Size{Memory: gib << 10}, sizedBy: "history", spec: &corev1.Container{}}
	}
	init := func(w want) want { w.init = true; return w }
	sidecar := func(w want) want { w.sidecar = true; return init(w) }
	requested := func(w want) want { w.sizedBy = ""; return w }
	for name, tt := range map[string]struct {
		most   quantity.MiB // GiB
		claims bool
		wants  []want
		want   []quantity.MiB
	}{
		"two containers":                     {6, false, []want{of(4), of(4)}, []quantity.MiB{3072, 3072}},
		"an init container ends before":      {6, false, []want{init(of(4)), of(4)}, []quantity.MiB{4096, 4096}},
		"its claim stays":                    {6, true, []want{init(of(4)), of(4)}, []quantity.MiB{3072, 3072}},
		"an init container beside a sidecar": {6, false, []want{sidecar(of(2)), init(of(6)), of(3)}, []quantity.MiB{1536, 4608, 3072}},
		"a sidecar that starts later":        {6, false, []want{init(of(6)), sidecar(of(2)), of(3)}, []quantity.MiB{6144, 2048, 3072}},
		"an init container with its size":    {6, false, []want{sidecar(of(4)), requested(init(of(3))), of(2)}, []quantity.MiB{3072, 3072, 2048}},
		"the smallest slice of some":         {8, false, []want{of(8), of(1), of(1)}, []quantity.MiB{6144, 1024, 1024}},
	} {
		p := &config.Policy{}
		p.Limits.PerPod.Memory, p.Limits.MinMemory = tt.most<<10, 1<<10
		shareWithinPod(p, tt.wants, tt.claims)
		var got []quantity.MiB
		for _, w := range tt.wants {
			got = append(got, w.resolved.Memory)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

func TestBurstWithin(t *testing.T) {
	t.Parallel()
	for ratio, want := range map[int]quantity.MiB{0: 30 << 10, 1: 1 << 10, 2: 2 << 10, 40: 30 << 10} {
		p := &config.Policy{}
		p.Limits.MaxLimitRequestRatio = ratio
		if got := burstWithin(p, 1<<10, 30<<10); got != want {
			t.Errorf("%d times 1Gi: %s, want %s", ratio, got, want)
		}
	}
}

// TestClaimsWithinPod: an init container's slice ends before the others start, unless it may be a claim.
func TestClaimsWithinPod(t *testing.T) {
	t.Parallel()
	for strategy, want := range map[api.StrategyName]quantity.MiB{"": 3 << 10, "claim": 3 << 10, "time-slicing": 4 << 10} {
		p, problems := config.Parse("a", []byte("apiVersion: gpuslice.dev/v1\nstrategies: [time-slicing, claim]\nlimits: {perPod: {memory: 6Gi}}\ndefaultSlice: {fromHistory: {otherwise: 1Gi}}\n"))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		owner := advice.Owner{Kind: "Job", Name: "train"}
		in := &Input{Policy: p, Namespace: api.Namespace{Name: "a"}, Recommended: advice.Namespace{}, Pod: &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: owner.Kind, Name: owner.Name, Controller: new(true)}}},
			Spec:       corev1.PodSpec{InitContainers: []corev1.Container{{Name: "prepare"}}, Containers: []corev1.Container{{Name: "main"}}}}}
		req := api.Request{Strategy: strategy}
		for _, name := range []string{"prepare", "main"} {
			key := advice.Container{Namespace: "a", Owner: owner, Container: name}
			in.Recommended[key] = &advice.Recommendation{Container: key, Verdict: sizing.Right,
				Sizes: [len(advice.Coverages)]api.MiB{4 << 10, 4 << 10, 4 << 10}}
			req.Containers = append(req.Containers, api.ContainerRequest{Name: name, GPUs: 1})
		}
		wants, violations := resolveAll(in, req)
		if len(violations) > 0 || len(wants) != 2 || wants[0].resolved.Memory != want || wants[1].resolved.Memory != want {
			t.Errorf("strategy %q: %+v, want %s each (%v)", strategy, wants, want, violations)
		}
	}
}
