package policies_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
	"github.com/gpuslice/gpuslice/policies/rawpod"
)

// enough is far more than any of these inputs may cost on a busy machine; the dear ones take seconds where they are
// parsed before they are bounded.
const enough = 2 * time.Second

const (
	notRead    = "is not a quantity that is read"
	outOfRange = "is out of range; accepted: a whole number from 0 to 64"
	unaccepted = "is read only where policy accepts"
)

// quantities are what people and fuzzers write for a number of GPUs, with the denial that such a pod gets; empty: it is fine.
var quantities = map[string]string{
	"0.5": unaccepted, "500m": unaccepted, "0.1n": unaccepted, "1500m": "mixes whole GPUs and a fraction", "3000m": "requests 3 GPUs",
	"-1": outOfRange, "1e19": outOfRange, "1e64": outOfRange, "1Ki": outOfRange, "1Ei": outOfRange,
	"9223372036854775807": outOfRange, "9223372036854775808": outOfRange,
	"18446744073709551616": outOfRange, "36893488147419103232": outOfRange,
	"1e400": notRead, "1e100000": notRead, "1e10000000": notRead, "1e999999999": notRead, "1e-400": notRead,
	"NaN": notRead, "Inf": notRead, "１": notRead, "": "quantities must match",
	"-0": "", "1.0": "", " 1": "", "+1": "", "01": "",
}

func TestHostileQuantities(t *testing.T) {
	t.Parallel()
	t.Run("a quantity of GPUs is answered at once", func(t *testing.T) {
		t.Parallel()
		for amount, want := range quantities {
			for _, list := range []string{"limits", "requests"} {
				start := time.Now()
				text := decidedText(t, podWith(fmt.Sprintf(`{"name":"a","image":"i","resources":{%q:{"nvidia.com/gpu":%q}}}`, list, amount)))
				if want == "" && text != "" || !strings.Contains(text, want) {
					t.Errorf("%s of %q: %q, want %q", list, amount, text, want)
				}
				if spent := time.Since(start); spent > enough {
					t.Errorf("%s of %q took %s", list, amount, spent)
				}
			}
		}
	})
	// None of them is an amount of memory, and only two are a fraction.
	t.Run("none is a size", func(t *testing.T) {
		t.Parallel()
		for number := range quantities {
			start := time.Now()
			if m, err := quantity.ParseMemory(number); err == nil && number != "1Ei" {
				t.Errorf("%q is %s of memory", number, m)
			}
			_, err := quantity.ParseFraction(number)
			if fine := number == "0.5" || number == "1.0"; fine != (err == nil) {
				t.Errorf("%q as a fraction: %v", number, err)
			}
			document := fmt.Sprintf("apiVersion: gpuslice.dev/v1\nlimits: {perContainer: {memory: %q}}\n", number)
			_, problems := config.Parse("a", []byte(document))
			if text := fmt.Sprint(problems.ToAggregate()); !strings.Contains(text, "limits.perContainer.memory: Invalid value") ||
				!strings.Contains(text, `accepted: a positive quantity such as "8Gi"`) {
				t.Errorf("%q in a policy: %s", number, text)
			}
			pod := podWith(gpuContainer("a"))
			annotation, _ := json.Marshal(fmt.Sprintf("a: {memory: %q}", number))
			pod = []byte(strings.Replace(string(pod), `"metadata":{`,
				`"metadata":{"annotations":{"gpuslice.dev/containers":`+string(annotation)+`},`, 1))
			if text := decidedText(t, pod); !strings.Contains(text, "annotation gpuslice.dev/containers") {
				t.Errorf("%q in an annotation: %s", number, text)
			}
			if spent := time.Since(start); spent > 2*enough {
				t.Errorf("%q took %s", number, spent)
			}
		}
	})
}

// decidedText is why the pod is not read or denied, "" where it is neither.
func decidedText(t *testing.T, pod []byte) string {
	t.Helper()
	raw, violation, err := rawpod.Decode(pod)
	switch {
	case err != nil:
		return err.Error()
	case violation != nil:
		return violation.String()
	}
	in := sliced(t)
	in.Pod = raw.Pod
	return policies.Decide(in).Message()
}

func TestHostilePod(t *testing.T) {
	t.Parallel()
	// Each list of a pod is filled.
	t.Run("floods are bounded before they are decoded", func(t *testing.T) {
		t.Parallel()
		empty := strings.Repeat("{},", 1_000_000) + "{}"
		inContainer := func(list string) string {
			return `{"spec":{"containers":[{"name":"a","` + list + `":[` + empty + `],"resources":{"limits":{"nvidia.com/gpu":"1"}}}]}}`
		}
		for name, pod := range map[string]string{
			"containers": `{"spec":{"containers":[` + empty + `]}}`, "init containers": `{"spec":{"initContainers":[` + empty + `]}}`,
			"volumes": `{"spec":{"volumes":[` + empty + `]}}`, "tolerations": `{"spec":{"tolerations":[` + empty + `]}}`,
			"ephemeral containers": `{"spec":{"ephemeralContainers":[` + empty + `]}}`, "owners": `{"metadata":{"ownerReferences":[` + empty + `]}}`,
			"variables": inContainer("env"), "mounts": inContainer("volumeMounts"), "ports": inContainer("ports"),
			"a hundred thousand variables": strings.Replace(inContainer("env"), empty, strings.Repeat(`{"name":"A"},`, 100_000)+"{}", 1),
		} {
			start := time.Now()
			if text := decidedText(t, []byte(pod)); !strings.Contains(text, "the pod has more than 20000 objects and lists") {
				t.Errorf("%s: %.200s", name, text)
			}
			if spent := time.Since(start); spent > 2*enough {
				t.Errorf("%s took %s", name, spent)
			}
		}
	})
	// Every class of letter is written where a container's name belongs.
	t.Run("odd names in an annotation are quoted", func(t *testing.T) {
		t.Parallel()
		for _, odd := range []string{"\u202e", "\u200b", "\u0301", "é", "ß", "İ", "\u00a0", "א", "漢", "😀", "\x7f", "\ufffd", "Ａ"} {
			annotation, _ := json.Marshal(fmt.Sprintf("%q: {memory: 1Gi}", "a"+odd))
			pod := strings.Replace(string(podWith(gpuContainer("a"))), `"metadata":{`,
				`"metadata":{"annotations":{"gpuslice.dev/containers":`+string(annotation)+`},`, 1)
			if text := decidedText(t, []byte(pod)); !strings.Contains(text, "annotation gpuslice.dev/containers") ||
				strings.ContainsAny(text, "\u202e\u200b\x7f\n") {
				t.Errorf("%q: %q", odd, text)
			}
		}
	})
	t.Run("resources that only look like GPUs are left alone", func(t *testing.T) {
		t.Parallel()
		for name, want := range map[string]string{
			"nvidia.com/GPU": "", "nvidia.com/gpu ": "", "nvidia.com/gpυ": "", "requests.nvidia.com/gpu": "", "NVIDIA.com/gpu": "",
			"nvidia.com/mig-1g.5gb": "nvidia.com/mig-1g.5gb",
		} {
			if text := decidedText(t, podWith(fmt.Sprintf(`{"name":"a","image":"i","resources":{"limits":{%q:"1"}}}`,
				name))); (want == "") != (text == "") || !strings.Contains(text, want) {
				t.Errorf("%q: %q, want %q", name, text, want)
			}
		}
	})
}
