package config

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/quota"
)

func usedEverywhere(c quota.Charge) func(quota.Scope) quota.Charge {
	return func(quota.Scope) quota.Charge { return c }
}

func TestExcess(t *testing.T) {
	t.Run("names what is exceeded as Kubernetes does", func(t *testing.T) {
		team := quota.Quota{
			Limits: []quota.Limit{{Name: "team-a", Limits: quota.Limits{Memory: new(quantity.MiB(64 * 1024)), Slices: new(int64(8))}}},
		}
		slice := quota.Holding{Namespace: "team-a", Charge: quota.Charge{Memory: 8 * 1024, Slices: 1}}
		for name, c := range map[string]struct {
			quota quota.Quota
			used  quota.Charge
			h     quota.Holding
			want  string
		}{
			"what fits exactly is allowed": {team, quota.Charge{Memory: 56 * 1024, Slices: 7}, slice, ""},
			"one dimension over names that one": {team, quota.Charge{Memory: 60 * 1024, Slices: 7},
				slice, "exceeded quota: team-a, requested: memory=8Gi, used: memory=60Gi, limited: memory=64Gi"},
			"both dimensions over name both": {team, quota.Charge{Memory: 60 * 1024, Slices: 8},
				slice, "exceeded quota: team-a, requested: memory=8Gi,slices=1, used: memory=60Gi,slices=8, limited: memory=64Gi,slices=8"},
			"a limit of zero allows none": {quota.Quota{Limits: []quota.Limit{{Name: "a", Limits: quota.Limits{GPUs: new(int64(0))}}}},
				quota.Charge{}, quota.Holding{Charge: quota.Charge{GPUs: 1}}, "exceeded quota: a, requested: gpus=1, used: gpus=0, limited: gpus=0"},
			"a dimension without limit is free": {team, quota.Charge{GPUs: 1000},
				quota.Holding{Charge: quota.Charge{Memory: 1, Slices: 1, GPUs: 64}}, ""},
			"no growth in what is already over": {team, quota.Charge{Slices: 80}, quota.Holding{Charge: quota.Charge{Memory: 1}}, ""},
			"no quota denies nothing":           {quota.Quota{}, quota.Charge{Memory: math.MaxInt64}, slice, ""},
			"sums that would overflow saturate": {team, quota.Charge{Memory: quantity.MaxMemory, Slices: 1},
				quota.Holding{Charge: quota.Charge{Memory: quantity.MaxMemory}},
				"exceeded quota: team-a, requested: memory=1048576Gi, used: memory=1048576Gi, limited: memory=64Gi"},
			"unknown memory under a memory limit": {team, quota.Charge{}, quota.Holding{Charge: quota.Charge{GPUs: 1}, MemoryUnknown: true},
				"exceeded quota: team-a, requested: memory=unknown, used: memory=0Mi, limited: memory=64Gi (the memory of the device it would hold is not known; write gpuslice.dev/memory)"},
		} {
			t.Run(name, func(t *testing.T) {
				got := ""
				if v := quota.Denial(c.quota.Excess(usedEverywhere(c.used), c.h)); v != nil {
					got = v.String()
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		}
	})
	// Red for a dimension that a quota cannot limit or a denial cannot name.
	t.Run("every dimension counts", func(t *testing.T) {
		charge := quota.Charge{Memory: 2, Slices: 3, GPUs: 5, Devices: 2 * quantity.Device}
		for _, d := range quota.Dimensions() {
			var limits quota.Limits
			document := d.Name + ": 1Mi"
			if d.Name != "memory" {
				document = d.Name + ": 1"
			}
			if d.Name == "devices" { // an amount, which the reader of documents takes from plain numbers, too
				document = d.Name + `: "1"`
			}
			if err := yaml.UnmarshalStrict([]byte(document), &limits); err != nil {
				t.Fatalf("%s: %v", d.Name, err)
			}
			q := quota.Quota{Limits: []quota.Limit{{Name: "a", Limits: limits}}}
			excess := q.Excess(usedEverywhere(quota.Charge{}), quota.Holding{Charge: charge})
			if len(excess) != 1 || excess[0].Dimension != d.Name || excess[0].Requested != d.Text(d.Amount(charge)) {
				t.Errorf("%s: %+v", d.Name, excess)
			}
		}
	})
	t.Run("devices are exact", func(t *testing.T) {
		p, problems := Parse("p", []byte(head+"quota: {devices: 2, pools: {t4: {devices: \"1/3\"}}}"))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		for name, held := range map[string][]quantity.Devices{
			"eight quarters": slices.Repeat([]quantity.Devices{quantity.Device / 4}, 8),
			"six thirds":     slices.Repeat([]quantity.Devices{quantity.Device / 3}, 6),
			"a device, a half and four eighths": append(slices.Repeat([]quantity.Devices{quantity.Device / 8}, 4),
				quantity.Device, quantity.Device/2),
			"fourteen sevenths": slices.Repeat([]quantity.Devices{quantity.Device / 7}, 14),
		} {
			var used quota.Charge
			for i, share := range held {
				one := quota.Charge{Slices: 1, Devices: share}
				if excess := p.QuotaFor("team-a").Excess(usedEverywhere(used), quota.Holding{Charge: one}); len(excess) > 0 {
					t.Errorf("%s: number %d: %+v", name, i+1, excess)
				}
				used = used.Plus(one)
			}
			v := quota.Denial(p.QuotaFor("team-a").Excess(usedEverywhere(used),
				quota.Holding{Charge: quota.Charge{Slices: 1, Devices: quantity.Device / 4}}))
			if want := "team-a, requested: devices=0.25, used: devices=2, limited: devices=2"; v == nil || v.Detail != want {
				t.Errorf("%s and a quarter: %v", name, v)
			}
		}
		text, err := json.Marshal(p.Quota.Pools["t4"])
		if want := `{"devices":"1/3"}`; err != nil || string(text) != want {
			t.Errorf("%s, want %s: %v", text, want, err)
		}
	})
	t.Run("what fits never exceeds a limit", func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		amount := func() int64 { return random.Int64N(1 << random.IntN(45)) }
		for range 20_000 {
			limit, used, asked := amount()%quantity.MaxCharge, amount()%quantity.MaxCharge, amount()%quantity.MaxCharge
			q := quota.Quota{Limits: []quota.Limit{{Name: "a", Limits: quota.Limits{Slices: &limit}}}}
			fits := len(q.Excess(usedEverywhere(quota.Charge{Slices: used}), quota.Holding{Charge: quota.Charge{Slices: asked}})) == 0
			if fits != (asked == 0 || used+asked <= limit) {
				t.Fatalf("used %d, asked %d, limit %d: fits is %t", used, asked, limit, fits)
			}
		}
	})
}

func TestQuotaFor(t *testing.T) {
	t.Run("resolves every part of the documents", func(t *testing.T) {
		var authority, tenant QuotaSpec
		for text, into := range map[string]*QuotaSpec{
			"budget: ml\nmemory: 64Gi\npools:\n  a100: {memory: 32Gi}\nclasses:\n  small: {slices: 2}\n": &authority,
			"memory: 16Gi\n": &tenant,
		} {
			if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
				t.Fatal(err)
			}
		}
		q := (&Policy{Quota: authority, TenantQuota: &tenant}).QuotaFor("team-a")
		used := func(s quota.Scope) quota.Charge {
			switch s {
			case quota.Scope{Pool: "a100"}:
				return quota.Charge{Memory: 30 * 1024}
			case quota.Scope{Class: "small"}:
				return quota.Charge{Slices: 2}
			case quota.Scope{Namespace: "team-a"}:
				return quota.Charge{Memory: 12 * 1024}
			}
			return quota.Charge{Memory: 40 * 1024}
		}
		h := quota.Holding{Namespace: "team-a", Pools: []string{"a100"}, Charge: quota.Charge{Memory: 8 * 1024, Slices: 1},
			Classes: map[string]quota.Charge{"small": {Memory: 8 * 1024, Slices: 1}}}
		want := "exceeded quota: ml (pool a100), requested: memory=8Gi, used: memory=30Gi, limited: memory=32Gi; " +
			"ml (class small), requested: slices=1, used: slices=2, limited: slices=2; " +
			"team-a/gpuslice-policy, requested: memory=8Gi, used: memory=12Gi, limited: memory=16Gi"
		if diff := cmp.Diff(want, quota.Denial(q.Excess(used, h)).String()); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
		elsewhere := h
		elsewhere.Pools, elsewhere.Classes, elsewhere.Namespace = []string{"t4"}, nil, "team-b"
		if excess := q.Excess(used, elsewhere); len(excess) > 0 {
			t.Errorf("a pod of another namespace, pool and class meets only the whole budget's limit, got %v", excess)
		}
		if a, b := (QuotaSpec{}).BudgetKey("ml"), authority.BudgetKey("team-a"); a == b {
			t.Errorf("the namespace ml and the shared budget ml are both %q", a)
		}
	})
	t.Run("a tenant's quota holds beside the authority's", func(t *testing.T) {
		authority := policyOf(t, "{quota: {budget: ml, slices: 10}}")
		got, clamped := tighten(authority, policyOf(t, "{quota: {budget: other, slices: 20, native: off}}"))
		if len(clamped) != 2 || clamped[0].Path != "quota.budget" || clamped[1].Path != "quota.native" {
			t.Errorf("clamped %v", clamped)
		}
		if diff := cmp.Diff(authority.Quota, got.Quota); diff != "" || authority.TenantQuota != nil {
			t.Errorf("the authority's changed (-want +got)\n%s", diff)
		}
		limits := got.QuotaFor("team-a").Limits
		if len(limits) != 2 || *limits[0].Limits.Slices != 10 || limits[0].Scope != (quota.Scope{}) || *limits[1].Limits.Slices != 20 ||
			limits[1].Scope != (quota.Scope{Namespace: "team-a"}) {
			t.Errorf("limits %+v", limits)
		}
		if got, _ := tighten(authority, policyOf(t, "{}")); got.TenantQuota != nil {
			t.Errorf("a tenant that says nothing has a quota: %+v", got.TenantQuota)
		}
	})
}

func TestValidateQuota(t *testing.T) {
	t.Run("reports every problem", func(t *testing.T) {
		path := field.NewPath("quota")
		for name, c := range map[string]struct {
			spec QuotaSpec
			want []string
		}{
			"nothing is fine":           {QuotaSpec{}, nil},
			"zero is a limit":           {QuotaSpec{GPUs: new(int64(0))}, nil},
			"a negative number":         {QuotaSpec{Slices: new(int64(-1))}, []string{"quota.slices"}},
			"a number beyond the bound": {QuotaSpec{GPUs: new(int64(math.MaxInt64))}, []string{"quota.gpus"}},
			"a budget without limits":   {QuotaSpec{Budget: "ml"}, []string{"quota"}},
			"a budget that is no name":  {QuotaSpec{Budget: "ML team", GPUs: new(int64(1))}, []string{"quota.budget"}},
			"a pool that limits nothing, a class with a bad name and number": {
				QuotaSpec{Pools: map[string]quota.Limits{"a100": {}}, Classes: map[string]quota.Limits{"Small": {Slices: new(int64(-1))}}},
				[]string{"quota.pools[a100]", "quota.classes[Small]", "quota.classes[Small].slices"}},
		} {
			t.Run(name, func(t *testing.T) {
				var got []string
				for _, err := range validateQuota(path, c.spec) {
					got = append(got, err.Field)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		}
	})
}

func TestParseQuota(t *testing.T) {
	t.Run("a policy has its quota", func(t *testing.T) {
		p, problems := Parse("sys/x",
			[]byte("apiVersion: gpuslice.dev/v1\nquota: {budget: ml, memory: 64Gi, gpus: 0, pools: {a100: {slices: 4}}}\n"))
		if len(problems) > 0 {
			t.Fatal(problems.ToAggregate())
		}
		want := QuotaSpec{Budget: "ml", Memory: new(quantity.MiB(64 * 1024)), GPUs: new(int64(0)),
			Pools: map[string]quota.Limits{"a100": {Slices: new(int64(4))}}}
		if diff := cmp.Diff(want, p.Quota); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
	t.Run("a quota without limits is denied with its problems", func(t *testing.T) {
		for document, want := range map[string]string{
			"slices: -1": "accepted: 0 to", "pools: {a100: {}}": "limits nothing",
			"budget: ml": "the budget has no limit", "classes: {Big: {slices: 1}}": "RFC 1123",
		} {
			_, problems := Parse("sys/x", []byte("apiVersion: gpuslice.dev/v1\nquota: {"+document+"}\n"))
			if len(problems) != 1 || !strings.Contains(problems.ToAggregate().Error(), want) {
				t.Errorf("%q: want one problem with %q, got %v", document, want, problems)
			}
		}
	})
	t.Run("native is a word", func(t *testing.T) {
		for name, c := range map[string]struct {
			quota string
			want  string // in the problem; "": none
		}{
			"the default":  {"{slices: 4}", ""},
			"off":          {"{native: \"off\", slices: 4}", ""},
			"another word": {"{native: wirte}", `supported values: "check", "off"`},
		} {
			var q QuotaSpec
			if err := yaml.UnmarshalStrict([]byte(c.quota), &q); err != nil {
				t.Fatal(err)
			}
			text := ""
			if errs := validateQuota(field.NewPath("quota"), q); len(errs) > 0 {
				text = errs.ToAggregate().Error()
			}
			if (text == "") != (c.want == "") || !strings.Contains(text, c.want) {
				t.Errorf("%s: %q", name, text)
			}
		}
	})
}

func TestQuotaOfNothing(t *testing.T) {
	t.Run("0 allows none, of memory as well", func(t *testing.T) {
		p, problems := Parse("gpuslice-system/a", []byte("apiVersion: gpuslice.dev/v1\nnamespaces: {names: [a]}\nquota: {memory: 0}\n"))
		if len(problems) > 0 {
			t.Fatal(problems.ToAggregate())
		}
		if p.Quota.Memory == nil || *p.Quota.Memory != 0 {
			t.Errorf("the quota is %v, want 0", p.Quota.Memory)
		}
	})
}
