package policies

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// profileEveryCase calls with over all profiles, views, sizes and neighbours.
func profileEveryCase(with func(profileCase)) {
	frameworks := append(FrameworkNames(), "pytorch-1.9", "pytorch-1.10", "pytorch-2.4", "pytorch-2.10", "ollama-0.5.4", "ollama-0.30", "vllm-0.20.0")
	for _, framework := range frameworks {
		for _, view := range []ProfileView{ProfileViewWhole, ProfileViewLimitedFree, ProfileViewSliced, ProfileViewUnknown} {
			for _, total := range []int64{-1, profileT4, 80 * profileGiB} {
				for _, slice := range []int64{1, 256 << 20, 513 << 20, 4 * profileGiB, 80 * profileGiB} {
					for _, alone := range []bool{false, true} {
						with(profileCase{framework: framework, view: view, total: total, slice: slice, alone: alone})
					}
				}
			}
		}
	}
}

var (
	profilePlainValue = regexp.MustCompile(`^[A-Za-z0-9_.:,]+$`)
	profileFractions  = regexp.MustCompile(`(?:FRACTION=|fraction:|WIGGLE_ROOM=)([^,]+)`)
)

func TestProfileValuesAreWellFormed(t *testing.T) {
	t.Parallel()
	reserved := ProfileReservedVariables()
	profileEveryCase(func(c profileCase) {
		got := ProfileFor(c.input())
		seen := map[string]bool{}
		for _, e := range got.Env {
			if !profilePlainValue.MatchString(e.Value) || seen[e.Name] || !strings.Contains(strings.Join(reserved, " "), e.Name) {
				t.Errorf("%+v: %s=%q is empty, odd, set twice, or not reserved", c, e.Name, e.Value)
			}
			seen[e.Name] = true
			for _, m := range profileFractions.FindAllStringSubmatch(e.Name+"="+e.Value, -1) {
				if f, err := strconv.ParseFloat(m[1], 64); err != nil || f <= 0 || f >= 1 || strings.ContainsAny(m[1], "eE") {
					t.Errorf("%+v: %q in %s=%q is no plain fraction", c, m[1], e.Name, e.Value)
				}
				if c.view == ProfileViewSliced || c.view == ProfileViewUnknown || c.total < 0 {
					t.Errorf("%+v: %s=%q is a fraction of a total that is not the device's, or not known", c, e.Name, e.Value)
				}
			}
		}
		if got.Capped == (got.Cap == "") || got.Capped != (got.NotCapped == "") {
			t.Errorf("%+v: capped %v, %q, %q", c, got.Capped, got.Cap, got.NotCapped)
		}
	})
}

func TestProfileWarningsFitAnAdmissionWarning(t *testing.T) {
	t.Parallel()
	profileEveryCase(func(c profileCase) {
		for _, envFrom := range []bool{false, true} {
			c.envFrom = envFrom
			for _, w := range ProfileFor(c.input()).Warnings {
				if len(w) > 120 {
					t.Errorf("%+v: %d characters: %s", c, len(w), w)
				}
			}
		}
	})
}

func TestProfileTwiceIsTheSameAndChangesNothing(t *testing.T) {
	t.Parallel()
	profileEveryCase(func(c profileCase) {
		c.env, c.args, c.image = "A=$(B) PYTORCH_ALLOC_CONF=x:1 XLA_CLIENT_MEM_FRACTION=.2", []string{"--gpu-memory-utilization", "0.9"}, profileTorch210
		in, untouched := c.input(), c.input()
		first := ProfileFor(in)
		if diff := cmp.Diff(first, ProfileFor(in)); diff != "" {
			t.Fatalf("%+v: twice (-first +second):\n%s", c, diff)
		}
		if diff := cmp.Diff(untouched, in); diff != "" {
			t.Fatalf("%+v: input (-before +after):\n%s", c, diff)
		}
	})
}

// What a profile set counts as a cap when it comes back as the user's own, so that a pod that was copied keeps its tier.
func TestProfileOwnCapIsStrictEnough(t *testing.T) {
	t.Parallel()
	profileEveryCase(func(c profileCase) {
		in := c.input()
		first := ProfileFor(in)
		for _, e := range first.Env {
			in.Container.Env = append(in.Container.Env, corev1.EnvVar{Name: e.Name, Value: e.Value})
		}
		if again := ProfileFor(in); again.Capped != first.Capped || len(again.Env) != 0 {
			t.Errorf("%+v: first capped by %q, then %v (%s) with %v", c, first.Cap, again.Capped, again.NotCapped, again.Env)
		}
	})
}

func TestProfileOddInputIsAnswered(t *testing.T) {
	t.Parallel()
	for i, in := range []ProfileInput{
		{},
		{Container: &corev1.Container{}},
		{Container: &corev1.Container{}, Framework: "jax", SliceBytes: -1, LimitBytes: -1, TotalBytes: -1, AllowanceBytes: -1, Processes: -1, GPUs: -1, View: ProfileViewWhole},
		{Container: &corev1.Container{}, Framework: "vllm", SliceBytes: 1<<63 - 1, TotalBytes: 1<<63 - 1, View: ProfileViewWhole, Switches: map[string]ProfileSwitch{"vllm": {Version: "x", Images: []string{"["}}}},
		{Container: &corev1.Container{}, Framework: strings.Repeat("pytorch-", 1000)},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			if got := ProfileFor(in); got.NotCapped == "" && !got.Capped {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func FuzzProfileArguments(f *testing.F) {
	for _, seed := range [][2]string{{"sh", "vllm serve m --gpu-memory-utilization 0.9"}, {"bash", `exec "a b" 'c`}, {"sh", "a\\"}, {"sh", "$(A) ${B} $("}, {"sh", "a;b|c&&(d)\n#"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, first, script string) {
		c := &corev1.Container{Command: []string{first, "-c", script}, Args: []string{script}}
		size := 0
		for _, w := range profileWords(c) {
			size += len(w.text)
		}
		if limit := len(first) + 2 + 2*len(script); size > limit {
			t.Errorf("%d bytes of words from %d", size, limit)
		}
		value, found := profileFlag(profileShellWords("x --flag=v "+first), "--flag")
		if !found || value == "" && !strings.Contains(first, "--flag") {
			t.Errorf("--flag=v before %q was not found", first)
		}
		ProfileFor(ProfileInput{Container: c, SliceBytes: profileGiB, TotalBytes: 2 * profileGiB, View: ProfileViewWhole})
	})
}

func FuzzProfileAllocConf(f *testing.F) {
	for _, seed := range []string{"", "max_split_size_mb:128", "a:[b:c,d:e],per_process_memory_fraction:0.1", ",,:", "[[", "]],a:b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		size := 0
		for _, pair := range profileAllocPairs(text) {
			if pair[0] == "" {
				t.Errorf("an empty key in %q", text)
			}
			size += len(pair[0]) + len(pair[1])
		}
		if size > len(text) {
			t.Errorf("%q has %d bytes of pairs", text, size)
		}
		// What policy may set is read by every version that it was accepted for.
		if errs := ProfileSwitchErrors(nil, "pytorch", ProfileSwitch{AllocConf: &text}); len(errs) == 0 && text != "" && !profilePlainValue.MatchString(text) {
			t.Errorf("%q is accepted", text)
		}
	})
}

func BenchmarkProfileFor(b *testing.B) {
	in := profileCase{image: "registry.corp/dockerhub/vllm/vllm-openai:v0.20.0", command: []string{"bash", "-c", "exec vllm serve m --port 8000 --max-model-len 8192"}, env: "A=b HF_HOME=/cache"}.input()
	b.ReportAllocs()
	for b.Loop() {
		ProfileFor(in)
	}
}
