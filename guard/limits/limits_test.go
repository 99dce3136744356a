package limits

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func environment(vars []Variable) func(string) (string, bool) {
	m := map[string]string{}
	for _, v := range vars {
		m[v.Name] = v.Value
	}
	return func(name string) (string, bool) { value, set := m[name]; return value, set }
}

// with is the environment of one container on defaults, with some variables
// replaced.
func with(replaced ...Variable) func(string) (string, bool) {
	l := Default()
	l.Containers = []Container{{Name: "trainer", SliceBytes: 8 << 30, LimitBytes: 8 << 30, GPUs: 1}}
	return environment(append(l.Env(), replaced...))
}

// sample returns a valid Limits in which every field may differ from its
// default.
func sample(r *rand.Rand) Limits {
	l := Default()
	for i := range 1 + r.IntN(4) {
		slice := 1 + r.Int64N(80<<30)
		l.Containers = append(l.Containers, Container{
			Name: "c" + strconv.Itoa(i), SliceBytes: slice, LimitBytes: slice + r.Int64N(8<<30), GPUs: 1 + r.IntN(8),
		})
	}
	l.Act = pick(r, ActAlways, ActPressure)
	l.Escalation = pick(r, EscalationContainer, EscalationObserve)
	l.MPSTermination = pick(r, MPSTerminationObserve, MPSTerminationSignal)
	l.WarnPercent, l.PressurePercent, l.MaxTerminations = 1+r.IntN(100), 1+r.IntN(100), 1+r.IntN(10)
	l.Grace, l.TermGrace, l.Settle = span(r, 0, time.Hour), span(r, 0, 10*time.Minute), span(r, 0, time.Hour)
	l.Interval = span(r, 20*time.Millisecond, 5*time.Second)
	l.FastInterval = span(r, 20*time.Millisecond, l.Interval)
	l.TerminationsWindow = span(r, time.Second, time.Hour)
	l.IdleReport, l.IdleTerminate = pick(r, 0, 4*time.Hour), pick(r, 0, 8*time.Hour)
	l.DryRun, l.ExpectMPS, l.OneDevice = pick(r, true, false), pick(r, true, false), pick(r, true, false)
	l.MPSPipeDirectory = pick(r, "/mps/nvidia.com/gpu.shared/pipe", `/run/a "quoted" <path>, with=all`)
	l.MPSControl = pick(r, "", "/usr/bin/nvidia-cuda-mps-control")
	l.MinDriver = pick(r, "", "565.57.01")
	l.MinDeviceBytes = r.Int64N(80 << 30)
	l.MaxDeviceBytes = l.MinDeviceBytes + r.Int64N(80<<30)
	l.MetricsPort = r.IntN(65536)
	return l
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func span(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}

func TestEnvRoundTrip(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		want := sample(r)
		got, err := FromEnv(environment(want.Env()))
		if err != nil {
			t.Fatalf("%v\nfrom %v", err, want.Env())
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("came back as\n%+v\nwas\n%+v", got, want)
		}
		if !slices.Equal(want.Env(), got.Env()) {
			t.Fatalf("two texts for one value:\n%v\n%v", want.Env(), got.Env())
		}
	}
}

// TestEnvCarriesEveryField fails when a field is added to Limits and not to the
// wire: sample must differ from the default in it, and the round trip above
// must then carry it.
func TestEnvCarriesEveryField(t *testing.T) {
	t.Parallel()
	r, plain := rand.New(rand.NewPCG(3, 4)), reflect.ValueOf(Default())
	differed, fields := map[string]bool{}, reflect.VisibleFields(plain.Type()) // those of Node, too
	for range 50 {
		v := reflect.ValueOf(sample(r))
		for _, f := range fields {
			if !reflect.DeepEqual(v.FieldByIndex(f.Index).Interface(), plain.FieldByIndex(f.Index).Interface()) {
				differed[f.Name] = true
			}
		}
	}
	for _, f := range fields {
		if f.Name != "Version" && !differed[f.Name] {
			t.Errorf("no sample sets %s, so the round trip does not test it", f.Name)
		}
	}
}

func TestEnvVariables(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	vars := sample(r).Env()
	var names []string
	for _, v := range vars {
		names = append(names, v.Name)
		if strings.ContainsAny(v.Value, "$\n\x00") {
			t.Errorf("%s=%q holds what the kubelet expands or a runtime rejects", v.Name, v.Value)
		}
	}
	if want := []string{VersionVariable, ContainersVariable, PolicyVariable, NodeVariable}; !slices.Equal(names, want) {
		t.Errorf("wrote %q, want %q", names, want)
	}
}

func TestFromEnvDefaults(t *testing.T) {
	t.Parallel()
	got, err := FromEnv(environment([]Variable{
		{VersionVariable, "1"},
		{ContainersVariable, `[{"name":"trainer","slice":1024}]`},
		{PolicyVariable, `{"grace":"0s","mpsTermination":"signal"}`},
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Containers = []Container{{Name: "trainer", SliceBytes: 1024, LimitBytes: 1024, GPUs: 1}}
	want.Grace, want.MPSTermination = 0, MPSTerminationSignal
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}

func TestFromEnvErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		env  func(string) (string, bool)
		want []string
	}{
		"no variable at all":      {environment(nil), []string{"GPUSLICE_GUARD_VERSION: not set"}},
		"a newer version":         {with(Variable{VersionVariable, "7"}), []string{"got 7", "understands up to 1"}},
		"a version that is text":  {with(Variable{VersionVariable, "new"}), []string{`"new" is not a version number`}},
		"no container":            {with(Variable{ContainersVariable, "[]"}), []string{"containers: none"}},
		"a value that is no JSON": {with(Variable{PolicyVariable, "{"}), []string{"read GPUSLICE_GUARD_POLICY"}},
		"an unknown setting":      {with(Variable{PolicyVariable, `{"graec":"1s"}`}), []string{`unknown field "graec"`}},
		"two values in one":       {with(Variable{NodeVariable, `{} {}`}), []string{"text after the value"}},
		"a value beyond bounds":   {with(Variable{NodeVariable, strings.Repeat(" ", 70000)}), []string{"70000 bytes, at most 65536"}},
		"a duration without unit": {with(Variable{PolicyVariable, `{"grace":"5"}`}), []string{`"5" is not a duration`}},
		"two bad variables, both reported": {
			with(Variable{PolicyVariable, "x"}, Variable{NodeVariable, "y"}),
			[]string{"read GPUSLICE_GUARD_POLICY", "read GPUSLICE_GUARD_NODE"},
		},
		"bad containers, each reported": {
			with(Variable{ContainersVariable,
				`[{"name":"A","slice":5},{"name":"b"},{"name":"c","slice":5,"limit":4,"gpus":-1},{"name":"c","slice":1}]`}),
			[]string{"containers[0].name", "containers[1].slice", "containers[2].limit",
				"containers[2].gpus", "containers[3].name: \"c\" is there twice"},
		},
		"bad settings, each reported": {
			with(Variable{PolicyVariable,
				`{"act":"never","warnPercent":0,"interval":"1s","fastInterval":"2s","maxTerminations":0,"terminate":"","terminationWindow":"0s"}`}),
			[]string{"act: ", "warnPercent: 0", "fastInterval: 2s is longer", "maxTerminations: 0", "terminate: ", "terminationWindow: 0s"},
		},
		"bad node, each reported": {
			with(Variable{NodeVariable,
				`{"mpsPipeDirectory":"tmp","mpsControl":"/a/$(B)","minDeviceBytes":2,"maxDeviceBytes":1,"minDriver":"new","metricsPort":70000}`}),
			[]string{"mpsPipeDirectory", "mpsControl", "minDeviceBytes", "minDriver", "metricsPort"},
		},
		"a daemon expected nowhere": {with(Variable{NodeVariable, `{"expectMPS":true}`}), []string{"needs mpsPipeDirectory"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := FromEnv(tc.env)
			if err == nil {
				t.Fatalf("accepted as %+v", got)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestErrVersion(t *testing.T) {
	t.Parallel()
	if _, err := FromEnv(with(Variable{VersionVariable, "2"})); !errors.Is(err, ErrVersion) {
		t.Errorf("got %v, want ErrVersion", err)
	}
}

func FuzzFromEnv(f *testing.F) {
	for _, v := range []Limits{Default(), sample(rand.New(rand.NewPCG(7, 8)))} {
		e := v.Env()
		f.Add(e[0].Value, e[1].Value, e[2].Value, e[3].Value)
	}
	f.Add("1", `[{"name":"a","slice":9223372036854775807}]`, `{"grace":"-1ns"}`, `{"mpsPipeDirectory":"/\ud800"}`)
	f.Fuzz(func(t *testing.T, version, containers, policy, node string) {
		first, err := FromEnv(environment([]Variable{
			{VersionVariable, version}, {ContainersVariable, containers}, {PolicyVariable, policy}, {NodeVariable, node},
		}))
		if err != nil {
			return
		}
		second, err := FromEnv(environment(first.Env()))
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("%+v came back as %+v, %v", first, second, err)
		}
	})
}
