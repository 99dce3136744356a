package inventory

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/quota"
)

// full has a value in every field.
func full() *Fleet {
	busy := 0.5
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	f := New(at)
	f.Version, f.Unread, f.Notes = "v0.3.0", []string{"quotas are unknown"}, []string{"left out are resources of network cards"}
	f.Pools = []Pool{{Name: "crimson-l4", Resource: "nvidia.com/gpu.shared", Class: "crimson-gpus", Strategy: "time-slicing",
		Product: "NVIDIA-L4", DeviceMemory: 23034, InstanceMemory: 1, Slice: 5400, Reserve: 1024, Replicas: 4, Share: 0.25, Granular: true,
		MIGProfile: "1g.10gb", Claims: true, Driver: "580.95"}}
	f.Nodes = []Node{{Name: "l4-1",
		Labels:        map[string]string{"team": "crimson", "nvidia.com/gpu.product": "NVIDIA-L4", "kubernetes.io/hostname": "l4-1"},
		Taints:        []corev1.Taint{{Key: "acme.com/team", Value: "crimson", Effect: "NoSchedule"}},
		Unschedulable: true,
		NotReady:      true,
		Allocatable:   Resources{"cpu": 16000, "acme.com/fpga": 1, "nvidia.com/gpu.shared": 4},
		Others:        Resources{"cpu": 100}, GPUs: GPUs{"NVIDIA-L4", 1, 23034, true, true}, Offers: []Offer{{"crimson-l4", 4}}}}
	f.Pods = []Pod{{
		Namespace: "team-a", Name: "train-0", Labels: map[string]string{"app": "train"}, Owner: Owner{"Job", "train"},
		Node: "l4-1", Phase: "Running", Created: at, Bound: at, Ended: at,
		Requests: Resources{"cpu": 100, "nvidia.com/gpu.shared": 1},
		Priority: -1, SchedulerName: "crimson-scheduler", NodeSelector: map[string]string{"team": "crimson"},
		Affinity: &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "team", Operator: "In", Values: []string{"crimson"}},
						{Key: "nvidia.com/gpu.memory", Operator: "Gt", Values: []string{"20000"}}},
					MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"l4-1"}}}}}}},
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: "kubernetes.io/hostname", Namespaces: []string{"team-a"},
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}}}}},
		Tolerations: []corev1.Toleration{{Key: "acme.com/team", Operator: "Equal", Value: "crimson"}},
		Spread: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone",
			WhenUnsatisfiable: "DoNotSchedule", LabelSelector: &metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "In", Values: []string{"train"}}},
			}}},
		Slices: []Slice{{"main", "crimson-l4", "nvidia.com/gpu.shared", 1, 4096, 0.25, 4096, 5400, 25, "time-slicing", "guard",
			"guard", []Usage{{"GPU-1", 1 << 30, 2 << 30, &busy}}}},
		Claims: 1, Waiting: "0/5 nodes are available",
	}}
	f.Quotas = []Quota{{"namespace/team-a", []string{"team-a"}, []quota.Figure{
		{Quota: "quota", Namespace: "team-a", Part: "pool/crimson-l4", Dimension: "memory", Limit: 8 << 30, Used: 4 << 30, Reserved: 1},
	}}}
	return f
}

func written(t testing.TB, f *Fleet) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unpacked(t testing.TB, f *Fleet) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(written(t, f)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRoundTrip(t *testing.T) {
	for name, f := range map[string]*Fleet{"full": full(), "empty": New(time.Unix(0, 0))} {
		t.Run(name, func(t *testing.T) {
			for form, text := range map[string][]byte{"compressed": written(t, f), "not compressed": []byte(unpacked(t, f))} {
				got, err := Read(bytes.NewReader(text))
				if err != nil {
					t.Fatalf("%s: %v", form, err)
				}
				if diff := cmp.Diff(f, got); diff != "" {
					t.Errorf("%s (-written +read):\n%s", form, diff)
				}
			}
		})
	}
	t.Run("every field has a value", func(t *testing.T) {
		f := full()
		f.Hashed = true
		for _, v := range []any{*f, f.Pools[0], f.Nodes[0], f.Nodes[0].GPUs, f.Pods[0],
			f.Pods[0].Slices[0], f.Pods[0].Slices[0].Usage[0], f.Quotas[0]} {
			for i := range reflect.TypeOf(v).NumField() {
				if reflect.ValueOf(v).Field(i).IsZero() {
					t.Errorf("%T: field %s is not tried", v, reflect.TypeOf(v).Field(i).Name)
				}
			}
		}
	})
	t.Run("the same bytes", func(t *testing.T) {
		if !bytes.Equal(written(t, full()), written(t, full())) {
			t.Error("a Fleet is written in two ways")
		}
	})
}

func TestReadErrors(t *testing.T) {
	text := unpacked(t, full())
	edited := func(old, updated string) string {
		out := strings.Replace(text, old, updated, 1)
		if out == text {
			t.Fatalf("%q is not in the text", old)
		}
		return out
	}
	pods := func(n int) string {
		return edited(`"pods":[`, `"pods":[`+strings.Repeat(`{"namespace":"a","name":"b","phase":"Running"},`, n))
	}
	compressed := string(written(t, full()))
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "it is empty or ends in the middle"},
		{"half of it", compressed[:len(compressed)/2], "ends in the middle"},
		{"half of the JSON", text[:len(text)/2], "ends in the middle"},
		{"its head alone", compressed[:5], "ends in the middle"},
		{"a damaged byte", compressed[:len(compressed)-6] + "\x00" + compressed[len(compressed)-5:], "gzip: invalid checksum"},
		{"a newer format", edited(`"format":1`, `"format":2`),
			"it has format 2, and this build reads format 1: use the gpuslice that wrote it, or a newer one"},
		{"an older format", edited(`"format":1`, `"format":0`), "take it again"},
		{"a newer format that changed more", edited(`"format":1`, `"format":7`)[:400], "it has format 7"},
		{"another document", `{"apiVersion": "v1", "kind": "List", "items": []}`, `it is no snapshot: apiVersion "v1", kind "List"`},
		{"another document with nodes", `{"nodes": []}`, "it is no snapshot"},
		{"text", "NAME  STATUS", "it is no JSON"},
		{"a list", "[]", "is not accepted there"},
		{"more after it", text + "{}", "byte"},
		{"nodes that are none", edited(`"nodes":[`, `"nodes":{},"other":[`), "is no list"},
		{"a utilization above 1", edited(`"utilizationRatio":0.5`, `"utilizationRatio":1e300`), "a utilization of 1e+300, accepted: 0 to 1"},
		{"a node without a name", edited(`{"name":"l4-1"`, `{"name":""`), "a node without a name"},
		{"two nodes", edited(`"nodes":[`, `"nodes":[{"name":"l4-1"},`), `two nodes have the name "l4-1"`},
		{"two pods", edited(`"pods":[`, `"pods":[{"namespace":"team-a","name":"train-0"},`), `two pods have the name "team-a/train-0"`},
		{"a figure below zero", edited(`"limit":8589934592`, `"limit":-1`), `budget "namespace/team-a": a figure of -1`},
		{"an unknown pool", edited(`"offers":[{"pool":"crimson-l4"`, `"offers":[{"pool":"h100"`),
			`node "l4-1" offers pool "h100", which is not in the snapshot`},
		{"a negative amount", edited(`"cpu":16000`, `"cpu":-1`), `node "l4-1": -1 of "cpu"`},
		{"an amount past all bounds", edited(`"cpu":16000`, `"cpu":9007199254740993`), "accepted: 0 to"},
		{"an amount that is no integer", edited(`"cpu":16000`, `"cpu":1.5`), "/nodes: item 0: /allocatable/cpu: invalid syntax"},
		{"GPUs past all bounds", edited(`"count":1,`, `"count":100000,`), "100000 GPUs"},
		{"a long name", edited(`"train-0"`, `"`+strings.Repeat("a", 300)+`"`), "a name of 300 bytes, at most 253"},
		{"an item past its bound", edited(`"train-0"`, `"`+strings.Repeat("a", MaxItem)+`"`), "Pod of "},
		{"a long sentence", edited(`"quotas are unknown"`, `"`+strings.Repeat("a", maxText+1)+`"`), "at most 4096"},
		{"too many pods", pods(maxPods), "more than 60000 items"},
		{"no UTF-8", edited(`"train-0"`, "\"\xff\""), "invalid UTF-8"},
		{"a name twice", edited(`"name":"train-0"`, `"name":"train-0","name":"b"`), "duplicate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := Read(strings.NewReader(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.HasPrefix(err.Error(), "read the snapshot: ") || len(err.Error()) > 600 {
				t.Errorf("%v, %v; want %q", f, err, c.want)
			}
		})
	}
	t.Run("a fleet that could not be read is not written", func(t *testing.T) {
		f := full()
		f.Nodes[0].GPUs.Count = maxAllGPUs + 1
		if err := Write(io.Discard, f); err == nil || !strings.Contains(err.Error(), "more than 262144 GPUs") {
			t.Error(err)
		}
		f = full()
		f.Pods[0].Requests["memory"] = MaxQuantity + 1
		var b bytes.Buffer
		if err := Write(&b, f); err == nil || !strings.Contains(err.Error(), `pod "train-0": 9007199254740993 of "memory"`) || b.Len() > 0 {
			t.Errorf("%v, and %d bytes", err, b.Len())
		}
		f = full()
		f.Pods = make([]Pod, maxPods+1)
		if err := Write(io.Discard, f); err == nil || !strings.Contains(err.Error(), "1 nodes and 60001 pods, at most 20000 and 60000") {
			t.Error(err)
		}
	})
	t.Run("a reader that fails", func(t *testing.T) {
		broken := errors.New("disk")
		if _, err := Read(io.MultiReader(strings.NewReader(text[:100]), errReader{broken})); !errors.Is(err, broken) {
			t.Error(err)
		}
	})
}

type errReader struct{ error }

func (e errReader) Read([]byte) (int, error) { return 0, e.error }

// repeated is a text that goes on.
type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

// TestReadMemory holds what reading costs for texts that pretend much. A file of 128 MiB is not kept as such.
func TestReadMemory(t *testing.T) {
	const most = 900 << 20
	head := `{"apiVersion":"gpuslice.dev/v1","kind":"Fleet","format":1,`
	for name, text := range map[string][2]string{
		"empty pods":        {`"pods":[`, `{},`},
		"pods that spread":  {`"pods":[`, `{"namespace":"a","name":"b","phase":"Running","spread":[` + strings.Repeat("{},", 3000) + `{}]},`},
		"pods of slices":    {`"pods":[`, `{"namespace":"a","name":"b","phase":"Running","slices":[` + strings.Repeat("{},", 3000) + `{}]},`},
		"nodes with labels": {`"nodes":[`, `{"name":"a","labels":{"a":"","b":"","c":"","d":"","e":"","f":"","g":"","h":""}},`},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Read(io.MultiReader(strings.NewReader(head+text[0]), &repeated{text: text[1]}))
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Error("it is read")
			}
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > most {
				t.Errorf("allocated %d MiB, at most %d: %v", allocated>>20, int64(most)>>20, err)
			}
			t.Log(err)
		})
	}
}

func TestHashNames(t *testing.T) {
	f := full()
	f.HashNames([]byte("0123456789abcdef"))
	text := unpacked(t, f)
	for _, name := range []string{"team-a", "train", "l4-1", "crimson", "acme", "GPU-1", "main", "unknown", "0/5"} {
		if strings.Contains(text, name) {
			t.Errorf("%q is still in it: %s", name, text)
		}
	}
	n, p := f.Nodes[0], f.Pods[0]
	for what, pair := range map[string][2]string{
		"the node of the pod": {n.Name, p.Node},
		"its hostname":        {n.Name, n.Labels["kubernetes.io/hostname"]},
		"the field of a term": {n.Name,
			p.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]},
		"the key of a toleration": {n.Taints[0].Key, p.Tolerations[0].Key},
		"its value":               {n.Taints[0].Value, p.Tolerations[0].Value},
		"a number": {"20000",
			p.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[1].Values[0]},
		"the product":           {"NVIDIA-L4", n.Labels["nvidia.com/gpu.product"]},
		"the namespace":         {p.Namespace, f.Quotas[0].Namespaces[0]},
		"the budget":            {"namespace/" + p.Namespace, f.Quotas[0].Budget},
		"the pool of the node":  {f.Pools[0].Name, n.Offers[0].Pool},
		"the pool of the slice": {f.Pools[0].Name, p.Slices[0].Pool},
		"the pool of the quota": {"pool/" + f.Pools[0].Name, f.Quotas[0].Figures[0].Part},
	} {
		if pair[0] != pair[1] || pair[0] == "" {
			t.Errorf("%s: %q and %q", what, pair[0], pair[1])
		}
	}
	for key, value := range p.NodeSelector {
		if n.Labels[key] != value {
			t.Errorf("the selector no longer chooses the node: %s=%s, %v", key, value, n.Labels)
		}
	}
	other := full()
	other.HashNames([]byte("another key here"))
	if other.Nodes[0].Name == f.Nodes[0].Name {
		t.Error("two keys, one hash")
	}
}

// TestHashOurNames: names stand in values of gpuslice's own labels, and in names of resources that Kubernetes makes of classes.
func TestHashOurNames(t *testing.T) {
	f := full()
	const resource = "deviceclass.resource.kubernetes.io/crimson-gpus"
	f.Pools[0].Resource = resource
	f.Nodes[0].Labels["gpuslice.dev/trust-domain"] = "crimson"
	f.Pods[0].Requests = Resources{resource: 1, "deviceclass.resource.kubernetes.io/gpu.nvidia.com": 1}
	f.Pods[0].Labels = map[string]string{"gpuslice.dev/container": "main", "gpuslice.dev/class": "crimson-small",
		"gpuslice.dev/whatever": "crimson", "gpuslice.dev/memory": "8Gi"}
	f.HashNames([]byte("0123456789abcdef"))
	if text := unpacked(t, f); strings.Contains(text, "crimson") || strings.Contains(text, `"main"`) || !strings.Contains(text, "8Gi") {
		t.Errorf("%s", text)
	}
	p := f.Pods[0]
	if p.Requests[f.Pools[0].Resource] != 1 || p.Requests["deviceclass.resource.kubernetes.io/gpu.nvidia.com"] != 1 ||
		p.Labels["gpuslice.dev/container"] != p.Slices[0].Container {
		t.Errorf("what belongs together does not: %v, %v, %v", f.Pools[0].Resource, p.Requests, p.Labels)
	}
}

// TestHashConstraints: of what a pod or node demands no text is left, whatever fields Kubernetes has.
func TestHashConstraints(t *testing.T) {
	f := full()
	p := &f.Pods[0]
	for _, v := range []any{&p.Affinity, &p.Spread, &p.Tolerations, &f.Nodes[0].Taints} {
		fill(reflect.ValueOf(v).Elem(), "violet")
	}
	if before := strings.Count(unpacked(t, f), "violet"); before < 40 {
		t.Errorf("%d texts are tried", before)
	}
	f.HashNames([]byte("0123456789abcdef"))
	if text := unpacked(t, f); strings.Contains(text, "violet") {
		t.Errorf("a name is still in it: %s", text)
	}
}

// fill sets every text that v can have, but those of enumerations.
func fill(v reflect.Value, text string) {
	switch {
	case v.Type() == reflect.TypeFor[string]():
		v.SetString(text)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text)
	case v.Type() == reflect.TypeFor[map[string]string]():
		v.Set(reflect.ValueOf(map[string]string{text: text}))
	case v.Kind() == reflect.Struct && v.Type() != reflect.TypeFor[metav1.Time]():
		for i := range v.NumField() {
			fill(v.Field(i), text)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(unpacked(f, full())))
	f.Add(written(f, full()))
	f.Add([]byte(`{"apiVersion":"gpuslice.dev/v1","kind":"Fleet","format":1,"pods":[{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		second, err := Read(bytes.NewReader(written(t, first)))
		if err != nil {
			t.Fatalf("what was read cannot be written and read again: %v", err)
		}
		if !bytes.Equal(written(t, first), written(t, second)) {
			t.Error("it changed")
		}
		second.HashNames([]byte("0123456789abcdef"))
		if _, err := Read(bytes.NewReader(written(t, second))); err != nil {
			t.Errorf("with hashed names it cannot be read: %v", err)
		}
	})
}

// TestFitOfOneNamespace: whatever one namespace has, a snapshot can be written, with hashed names too, and no pod that holds a node is left
// out.
func TestFitOfOneNamespace(t *testing.T) {
	labels := func(n int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[strconv.FormatInt(int64(i), 36)] = ""
		}
		return all
	}
	for name, c := range map[string]struct {
		waiting, running, ended, nowhere, labels int
		kept                                     int // at least
		fails                                    string
	}{
		"small":                 {waiting: 5, running: 5, kept: 10},
		"a large one":           {waiting: 1, labels: 18_000},
		"a large one that runs": {running: 1, labels: 18_000, kept: 1},
		"many that wait":        {waiting: 30_000, running: 40_000, kept: maxPods - 1},
		"many that ended":       {ended: 30_000, running: 40_000, kept: maxPods - 1},
		"many bound to no node": {nowhere: 62_000, running: 10, kept: maxPods - 1},
		"many that run":         {running: 60_002, kept: 60_002, fails: "60002 pods, at most"},
	} {
		for _, hashed := range slices.Compact([]bool{false, c.labels > 0}) {
			f, shared := New(time.Unix(0, 0)), labels(c.labels)
			f.Nodes = []Node{{Name: "node-1"}}
			add := func(namespace, node string, phase corev1.PodPhase, n int) {
				for i := range n {
					f.Pods = append(f.Pods, Pod{Namespace: namespace, Name: fmt.Sprint(node, phase, i), Node: node, Phase: phase, Labels: shared})
				}
			}
			add("victim", "", corev1.PodPending, 1)
			add("tenant", "", corev1.PodPending, c.waiting)
			add("tenant", "node-1", corev1.PodRunning, c.running)
			add("tenant", "node-1", corev1.PodSucceeded, c.ended)
			add("tenant", "that-does-not-exist", corev1.PodPending, c.nowhere)
			f.Pods[0].Labels = map[string]string{"app": "a"}
			if hashed {
				f.HashNames([]byte("0123456789abcdef"))
			}
			before := len(f.Pods)
			notes := f.Trim()
			var out bytes.Buffer
			err := Write(&out, f)
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("%s, hashed %t: %v, want %q", name, hashed, err, c.fails)
			}
			running, victims := 0, 0
			for i := range f.Pods {
				if f.Pods[i].Phase == corev1.PodRunning {
					running++
				}
				if len(f.Pods[i].Labels) == 1 {
					victims++
				}
			}
			if running != c.running || victims != 1 && c.fails == "" || len(f.Pods) < c.kept {
				t.Errorf("%s, hashed %t: of %d pods %d stay, %d of those that run, %d of another namespace; %q", name,
					hashed, before, len(f.Pods), running, victims, notes)
			}
			if text := strings.Join(f.Unread, "\n"); hashed && strings.Contains(text, "tenant") ||
				(len(f.Pods) < before) != (len(notes) > 0) && c.running != 1 {
				t.Errorf("%s, hashed %t: notes %q", name, hashed, text)
			}
		}
	}
}

// TestFitOfManyNamespaces: the namespace that takes most is found at once, however many there are.
func TestFitOfManyNamespaces(t *testing.T) {
	f := New(time.Unix(0, 0))
	for i := range 120_000 {
		f.Pods = append(f.Pods, Pod{Namespace: fmt.Sprint("n", i%3000), Name: fmt.Sprint(i), Phase: corev1.PodPending})
	}
	if notes := f.Trim(); len(f.Pods) != maxPods || len(notes) != 21 {
		t.Errorf("%d pods stay, %d notes", len(f.Pods), len(notes))
	}
}

// TestBounded: a text past the bound ends with an error, and not with a part of it.
func TestBounded(t *testing.T) {
	b := &bounded{Reader: strings.NewReader("0123456789"), left: 4}
	text, err := io.ReadAll(b)
	if string(text) != "0123" || err == nil || b.failed != err || !strings.Contains(err.Error(), "larger than 128 MiB") {
		t.Errorf("%q, %v", text, err)
	}
}

// TestReadLarge prints how large a snapshot of 1,000 nodes and 10,000 pods is, and how long it takes to read.
func TestReadLarge(t *testing.T) {
	f, one := New(time.Unix(0, 0)), full()
	f.Pools, one.Pods[0].Affinity = one.Pools, nil
	for i := range 1000 {
		n := one.Nodes[0]
		n.Name = fmt.Sprintf("node-%d", i)
		f.Nodes = append(f.Nodes, n)
	}
	for i := range 10_000 {
		p := one.Pods[0]
		p.Name = fmt.Sprintf("pod-%d", i)
		f.Pods = append(f.Pods, p)
	}
	text := written(t, f)
	start := time.Now()
	got, err := Read(bytes.NewReader(text))
	if err != nil || len(got.Pods) != 10_000 {
		t.Fatal(err)
	}
	t.Logf("%d KiB, read in %s", len(text)>>10, time.Since(start))
}
