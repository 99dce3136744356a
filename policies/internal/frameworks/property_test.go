package frameworks

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/commandline"
)

// everyCase calls with over all profiles, views, sizes and neighbours.
func everyCase(with func(sample)) {
	frameworks := append(Names(), "pytorch-1.9", "pytorch-1.10", "pytorch-2.4", "pytorch-2.10", "ollama-0.5.4", "ollama-0.30", "vllm-0.20.0")
	for _, framework := range frameworks {
		for _, view := range []View{ViewWhole, ViewLimitedFree, ViewSliced, ViewUnknown} {
			for _, total := range []int64{-1, t4, 80 * giB} {
				for _, slice := range []int64{1, 256 << 20, 513 << 20, 4 * giB, 80 * giB} {
					for _, alone := range []bool{false, true} {
						with(sample{framework: framework, view: view, total: total, slice: slice, alone: alone})
					}
				}
			}
		}
	}
}

var (
	plainValue = regexp.MustCompile(`^[A-Za-z0-9_.:,]+$`)
	fractions  = regexp.MustCompile(`(?:FRACTION=|fraction:|WIGGLE_ROOM=)([^,]+)`)
)

func TestProperties(t *testing.T) {
	t.Parallel()
	t.Run("values are well formed", func(t *testing.T) {
		t.Parallel()
		reserved := reservedVariables()
		everyCase(func(c sample) {
			got := For(c.input())
			seen := map[string]bool{}
			for _, e := range got.Env {
				if !plainValue.MatchString(e.Value) || seen[e.Name] || !strings.Contains(strings.Join(reserved, " "), e.Name) {
					t.Errorf("%+v: %s=%q is empty, odd, set twice, or not reserved", c, e.Name, e.Value)
				}
				seen[e.Name] = true
				for _, m := range fractions.FindAllStringSubmatch(e.Name+"="+e.Value, -1) {
					if f, err := strconv.ParseFloat(m[1], 64); err != nil || f <= 0 || f >= 1 || strings.ContainsAny(m[1], "eE") {
						t.Errorf("%+v: %q in %s=%q is no plain fraction", c, m[1], e.Name, e.Value)
					}
					if c.view == ViewSliced || c.view == ViewUnknown || c.total < 0 {
						t.Errorf("%+v: %s=%q is a fraction of a total that is not the device's, or not known", c, e.Name, e.Value)
					}
				}
			}
			if got.Capped == (got.Cap == "") || got.Capped != (got.NotCapped == "") {
				t.Errorf("%+v: capped %v, %q, %q", c, got.Capped, got.Cap, got.NotCapped)
			}
		})
	})
	t.Run("warnings fit an admission warning", func(t *testing.T) {
		t.Parallel()
		everyCase(func(c sample) {
			for _, envFrom := range []bool{false, true} {
				c.envFrom = envFrom
				for _, w := range For(c.input()).Warnings {
					if len(w) > 120 {
						t.Errorf("%+v: %d characters: %s", c, len(w), w)
					}
				}
			}
		})
	})
	t.Run("twice is the same and changes nothing", func(t *testing.T) {
		t.Parallel()
		everyCase(func(c sample) {
			c.env, c.args, c.image = "A=$(B) PYTORCH_ALLOC_CONF=x:1 XLA_CLIENT_MEM_FRACTION=.2",
				[]string{"--gpu-memory-utilization", "0.9"}, torch210
			in, untouched := c.input(), c.input()
			first := For(in)
			if diff := cmp.Diff(first, For(in)); diff != "" {
				t.Fatalf("%+v: twice (-first +second):\n%s", c, diff)
			}
			if diff := cmp.Diff(untouched, in); diff != "" {
				t.Fatalf("%+v: input (-before +after):\n%s", c, diff)
			}
		})
	})
	// What a profile set counts as a cap when it comes back as the user's own, so that a pod that was copied keeps its tier.
	t.Run("its own cap is strict enough", func(t *testing.T) {
		t.Parallel()
		everyCase(func(c sample) {
			in := c.input()
			first := For(in)
			for _, e := range first.Env {
				in.Container.Env = append(in.Container.Env, corev1.EnvVar{Name: e.Name, Value: e.Value})
			}
			if again := For(in); again.Capped != first.Capped || len(again.Env) != 0 {
				t.Errorf("%+v: first capped by %q, then %v (%s) with %v", c, first.Cap, again.Capped, again.NotCapped, again.Env)
			}
		})
	})
	t.Run("odd input is answered", func(t *testing.T) {
		t.Parallel()
		for i, in := range []Input{
			{},
			{Container: &corev1.Container{}},
			{Container: &corev1.Container{}, Framework: "jax", SliceBytes: -1, LimitBytes: -1, TotalBytes: -1,
				AllowanceBytes: -1, Processes: -1, GPUs: -1, View: ViewWhole},
			{Container: &corev1.Container{}, Framework: "vllm", SliceBytes: 1<<63 - 1, TotalBytes: 1<<63 - 1, View: ViewWhole,
				Switches: map[string]Switch{"vllm": {Version: "x", Images: []string{"["}}}},
			{Container: &corev1.Container{}, Framework: strings.Repeat("pytorch-", 1000)},
		} {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				if got := For(in); got.NotCapped == "" && !got.Capped {
					t.Errorf("got %+v", got)
				}
			})
		}
	})
}

func FuzzArguments(f *testing.F) {
	for _, seed := range [][2]string{{"sh", "vllm serve m --gpu-memory-utilization 0.9"}, {"bash", `exec "a b" 'c`}, {"sh", "a\\"},
		{"sh", "$(A) ${B} $("}, {"sh", "a;b|c&&(d)\n#"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, first, script string) {
		c := &corev1.Container{Command: []string{first, "-c", script}, Args: []string{script}}
		size := 0
		for _, w := range commandline.Split(c) {
			size += len(w.Text)
		}
		if limit := len(first) + 2 + 2*len(script); size > limit {
			t.Errorf("%d bytes of words from %d", size, limit)
		}
		value, found := commandline.Flag(commandline.Split(&corev1.Container{Command: []string{"sh", "-c", "x --flag=v " + first}}), "--flag")
		if !found || value == "" && !strings.Contains(first, "--flag") {
			t.Errorf("--flag=v before %q was not found", first)
		}
		For(Input{Container: c, SliceBytes: giB, TotalBytes: 2 * giB, View: ViewWhole})
	})
}

func FuzzAllocConf(f *testing.F) {
	for _, seed := range []string{"", "max_split_size_mb:128", "a:[b:c,d:e],per_process_memory_fraction:0.1", ",,:", "[[", "]],a:b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		size := 0
		for _, pair := range allocPairs(text) {
			if pair[0] == "" {
				t.Errorf("an empty key in %q", text)
			}
			size += len(pair[0]) + len(pair[1])
		}
		if size > len(text) {
			t.Errorf("%q has %d bytes of pairs", text, size)
		}
		// What policy may set is read by every version that it was accepted for.
		if errs := SwitchErrors(nil, "pytorch", Switch{AllocConf: &text}); len(errs) == 0 && text != "" && !plainValue.MatchString(text) {
			t.Errorf("%q is accepted", text)
		}
	})
}

func BenchmarkFor(b *testing.B) {
	in := sample{image: "registry.corp/dockerhub/vllm/vllm-openai:v0.20.0",
		command: []string{"bash", "-c", "exec vllm serve m --port 8000 --max-model-len 8192"}, env: "A=b HF_HOME=/cache"}.input()
	b.ReportAllocs()
	for b.Loop() {
		For(in)
	}
}
