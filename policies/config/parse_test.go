package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/document"
	"github.com/gpuslice/gpuslice/policies/internal/frameworks"
	"github.com/gpuslice/gpuslice/policies/internal/modes"
	"github.com/gpuslice/gpuslice/policies/internal/spellings"
	"github.com/gpuslice/gpuslice/test/abuse"
)

const head = "apiVersion: gpuslice.dev/v1\n"

func TestParse(t *testing.T) {
	t.Parallel()
	t.Run("a short document is a whole policy", func(t *testing.T) {
		t.Parallel()
		p, problems := Parse("sys/default", []byte(head))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		got := fmt.Sprint(p.Name, " ", p.Mode, " ", p.EnforcementMode, " ", p.Templates, " ", p.Strategies, " ", p.MPS.PipeDirectory,
			" ", p.MPS.LogDirectory, " ", p.Guard.Grace.Duration)
		want := "sys/default opt-in enforce check [mig mps time-slicing exclusive] /run/nvidia-mps /var/log/nvidia-mps 2s"
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
	t.Run("claims are denied where a quota or slices by claim depend on it", func(t *testing.T) {
		t.Parallel()
		for text, want := range map[string]modes.ClaimsMode{
			"":                                    modes.ClaimsCount,
			"strategies: [mps]\n":                 modes.ClaimsCount,
			"quota: {native: check}\n":            modes.ClaimsCount,
			"quota: {slices: 0}\n":                modes.ClaimsDeny,
			"quota: {pools: {a: {gpus: 1}}}\n":    modes.ClaimsDeny,
			"strategies: [mig, claim]\n":          modes.ClaimsDeny,
			"claims: deny\n":                      modes.ClaimsDeny,
			"claims: count\nquota: {slices: 1}\n": modes.ClaimsCount,
		} {
			p, problems := Parse("sys/default", []byte(head+text))
			if len(problems) > 0 || p.Claims != want {
				t.Errorf("%q: claims: %v, want %s: %v", text, p, want, problems)
			}
		}
	})
	t.Run("the samples are valid policies and form one book", func(t *testing.T) {
		t.Parallel()
		files, err := filepath.Glob("../samples/*.yaml")
		if err != nil || len(files) < 4 {
			t.Fatalf("samples: %v, %v", files, err)
		}
		var all []*Policy
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, problems := Parse(file, data)
			for _, problem := range problems {
				t.Errorf("%s: %v", file, problem)
			}
			if p != nil {
				all = append(all, p)
			}
		}
		book := NewBook(all)
		if conflicts := book.Conflicts(
			[]api.Namespace{{Name: "x", Labels: map[string]string{"example.com/workload": "inference"}}}); len(conflicts) > 0 {
			t.Error(conflicts)
		}
		if p := book.Default(); p == nil || len(p.Pools.Declared) < 2 {
			t.Errorf("the default declares no pools: %+v", p)
		}
	})
}

func TestParseErrors(t *testing.T) {
	// Each bad input has the whole text that its author reads.
	t.Run("each names what is accepted", func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct{ name, document, want string }{
			{"an unknown key", head + "colour: red\n", `colour: Invalid value: "colour": unknown field; accepted: accept, apiVersion, claims, classes, contextAllowance, defaultFramework, defaultSlice, deviceClasses, enforcementMode, env, frameworks, guard, idle, kind, limits, memoryUnits, mig, minimumEnforcement, mode, mps, namespaces, optOut, pod, pools, quota, strategies, templates (line 2)`},
			{"the wrong case", head + "enforcementmode: warn\n",
				`enforcementmode: Invalid value: "enforcementmode": unknown field; did you mean "enforcementMode"? (line 2)`},
			{"an underscore inside a list",
				head + "pools: {declared: [{name: a, mps_provider: x, selector: {a: b}, resource: a.b/c, strategy: exclusive}]}\n",
				`pools.declared[0].mps_provider: Invalid value: "mps_provider": unknown field; did you mean "mpsProvider"? (line 2)`},
			{"a repeated key", head + "mode: off\noptOut: true\nmode: transparent\n",
				`mode: Duplicate value: "mode": the key is on line 2 and again on line 4`},
			{"a repeated key deep inside", head + "classes:\n  small: {memory: 1Gi, memory: 2Gi}\n",
				`classes[small].memory: Duplicate value: "memory": the key is on line 3 and again on line 3`},
			{"a number that costs seconds to parse", head + "defaultSlice: {memory: 1e10000000}\n",
				`defaultSlice.memory: Invalid value: "1e10000000": "1e10000000" is not an amount of memory; accepted: a positive quantity such as "8Gi" or "9728Mi" (line 2)`},
			{"more than any number", head + "defaultSlice: {fraction: 1e400}\n",
				`defaultSlice.fraction: Invalid value: "1e400": "1e400" is not a fraction; accepted: more than 0 and at most 1, such as "0.25" or "25pct" (line 2)`},
			{"more than one", head + "defaultSlice: {fraction: 1.0000001}\n",
				`defaultSlice.fraction: Invalid value: "1.0000001": "1.0000001" is not a fraction; accepted: more than 0 and at most 1, such as "0.25" or "25pct" (line 2)`},
			{"not a number", head + "defaultSlice: {fraction: .nan}\n",
				`defaultSlice.fraction: Invalid value: ".nan": ".nan" is not a fraction; accepted: more than 0 and at most 1, such as "0.25" or "25pct" (line 2)`},
			{"a fraction of nothing", head + "defaultSlice: {fraction: 0}\n",
				`defaultSlice.fraction: Invalid value: "0": "0" is out of range; accepted: more than 0 and at most 1, such as "0.25" or "25pct" (line 2)`},
			{"a negative amount", head + "defaultSlice: {memory: -8Gi}\n",
				`defaultSlice.memory: Invalid value: "-8Gi": "-8Gi" is not an amount of memory; accepted: a positive quantity such as "8Gi" or "9728Mi" (line 2)`},
			{"a look-alike of a digit", head + "defaultSlice: {memory: \"８Gi\"}\n",
				`defaultSlice.memory: Invalid value: "８Gi": "８Gi" is not an amount of memory; accepted: a positive quantity such as "8Gi" or "9728Mi" (line 2)`},
			{"an empty amount", head + "defaultSlice: {memory: \"\"}\n",
				`defaultSlice.memory: Invalid value: "": "" is not an amount of memory; accepted: a positive quantity such as "8Gi" or "9728Mi" (line 2)`},
			{"a limit of nothing", head + "limits: {perContainer: {memory: 0}}\n",
				`limits.perContainer.memory: Invalid value: "0": "0" is less than 1Mi (a number without a suffix counts bytes); accepted: a positive quantity such as "8Gi" or "9728Mi" (line 2)`},
			{"a burst below the least slice", head + "limits: {memoryLimit: 1Gi, minMemory: 2Gi}\n",
				`limits.memoryLimit: Invalid value: "1Gi": less than minMemory (2Gi); accepted: as much or more`},
			{"gigabytes forgotten", head + "defaultSlice: {memory: 8}\n",
				`defaultSlice.memory: Invalid value: "8": "8" is less than 1Mi (a number without a suffix counts bytes); accepted: a positive quantity such as "8Gi" or "9728Mi" (line 2)`},
			{"a key without a value", head + "mode:\n",
				`mode: Invalid value: "": nothing is written here; write a value, or leave the key out (line 2)`},
			{"an empty word", head + "mode: \"\"\n", `mode: Invalid value: "": that reads as if nothing were written; leave the key out, or write a value that is not empty or zero (line 2)`},
			{"a limit of none, which would read as no limit", head + "limits: {perPod: {slices: 0}}\n",
				`limits.perPod.slices: Invalid value: "0": that reads as if nothing were written; leave the key out, or write a value that is not empty or zero (line 2)`},
			{"no version", "mode: off\n", `apiVersion: Required value: this build reads gpuslice.dev/v1`},
			{"a version to come", "apiVersion: gpuslice.dev/v2\n",
				`apiVersion: Unsupported value: "gpuslice.dev/v2": supported values: "gpuslice.dev/v1"`},
			{"an unknown mode", head + "mode: Transparent\n",
				`mode: Unsupported value: "Transparent": supported values: "off", "opt-in", "transparent"`},
			{"a number where a word belongs", head + "mode: 1\n", `mode: Invalid value: "1": accepted: a text; write it in quotes: "1" (line 2)`},
			{"a word where a truth belongs", head + "optOut: \"true\"\n",
				`optOut: Invalid value: "true": accepted: true or false, without quotes (line 2)`},
			{"a fraction where a count belongs", head + "defaultSlice: {memory: 1Gi, compute: 2.5}\n",
				`defaultSlice.compute: Invalid value: "2.5": accepted: a whole number, without quotes (line 2)`},
			{"a list where a mapping belongs", head + "limits: [1]\n",
				`limits: Invalid value: accepted: a mapping of keys to values, not a list (line 2)`},
			{"a mapping where a list belongs", head + "strategies: {mig: true}\n",
				`strategies: Invalid value: accepted: a list, not a mapping (line 2)`},
			{"a number as a key", head + "classes: {1: {memory: 1Gi}}\n",
				`classes: Invalid value: "1": accepted: a text as key; write it in quotes (line 2)`},
			{"an unknown strategy", head + "strategies: [mps, timeslicing]\n",
				`strategies[1]: Unsupported value: "timeslicing": supported values: "time-slicing", "mps", "mig", "exclusive", "claim"`},
			{"a strategy twice", head + "strategies: [mps, mps]\n", `strategies[1]: Duplicate value: "mps"`},
			{"no strategy at all", head + "strategies: []\n",
				`strategies: Required value: at least one of [time-slicing mps mig exclusive claim]; leave the key out for [mig mps time-slicing exclusive]`},
			{"two sizes", head + "defaultSlice: {memory: 1Gi, fraction: 0.5}\n",
				`defaultSlice: Required value: exactly one of memory, fraction and class, and it has 2`},
			{"a limit below the slice", head + "defaultSlice: {memory: 8Gi, memoryLimit: 4Gi}\n",
				`defaultSlice.memoryLimit: Invalid value: "4Gi": less than memory (8Gi); accepted: as much or more`},
			{"more than all of a device's compute", head + "defaultSlice: {memory: 8Gi, compute: 101}\n",
				`defaultSlice.compute: Invalid value: 101: accepted: 1 to 100`},
			{"a negative number of processes", head + "defaultSlice: {memory: 8Gi, processes: -1}\n",
				`defaultSlice.processes: Invalid value: -1: accepted: 1 to 64`},
			{"a class that does not exist", head + "classes: {small: {memory: 1Gi}}\ndefaultSlice: {class: smal}\n",
				`defaultSlice.class: Invalid value: "smal": no such class; accepted: small, replica`},
			{"a class of a reserved name", head + "classes: {replica: {memory: 1Gi}}\n",
				`classes[replica]: Invalid value: "replica": the class "replica" is always there: whatever one replica of the pool holds`},
			{"a class of a class", head + "classes: {a: {memory: 1Gi, class: replica}}\n",
				`classes[a].class: Invalid value: "replica": a class does not refer to another; accepted: memory or fraction`},
			{"an unknown spelling", head + "accept: [hamy]\n",
				`accept[0]: Unsupported value: "hamy": supported values: "` + strings.Join(spellings.Names(), `", "`) + `"`},
			{"an unknown tier", head + "minimumEnforcement: kernel\n",
				`minimumEnforcement: Unsupported value: "kernel": supported values: "none", "framework", "guard", "mps", "driver", "hardware"`},
			{"a field of earlier builds", head + "sizing: {suggest: true}\n",
				`sizing: Invalid value: "sizing": removed field; leave it out: gpuslice recommend names the workloads that should have another size (line 2)`},
			{"a field of earlier builds in a default slice", head + "defaultSlice: {fromHistory: {otherwise: 4Gi}}\n",
				`defaultSlice.fromHistory: Invalid value: "fromHistory": removed field; write memory, and take the sizes of workloads from gpuslice recommend -o patch (line 2)`},
			{"a field of earlier builds in a minimum", head + "minimumEnforcement: {tier: guard, proven: true}\n",
				`minimumEnforcement.proven: Invalid value: "proven": removed field; leave it out, and run gpuslice verify --on-gpu to see what holds a slice on a GPU (line 2)`},
			{"a value of earlier builds", head + "quota: {native: write, slices: 4}\n",
				`quota.native: Invalid value: "write": removed; write check, and a ResourceQuota of your own where a limit has to hold while gpuslice is down`},
			{"a framework with no version to it", head + "defaultFramework: pytorch-two\n",
				`defaultFramework: Invalid value: "pytorch-two": accepted: one of ` +
					strings.Join(frameworks.Names(), ", ") + `, with -VERSION if wanted, or none`},
			{"a library preloaded", head + "env: [{name: LD_PRELOAD, value: x}]\n",
				`env[0].name: Invalid value: "LD_PRELOAD": decides which libraries or devices a container gets; policy does not set it`},
			{"a variable of ours", head + "env: [{name: CUDA_MPS_PIPE_DIRECTORY, value: x}]\n",
				`env[0].name: Invalid value: "CUDA_MPS_PIPE_DIRECTORY": gpuslice writes the variables that begin with GPUSLICE_, CUDA_MPS_, NVIDIA_GPU_MEMORY_ itself`},
			{"an unknown placeholder", head + "env: [{name: A, value: \"{{memoryGiB}}\"}]\n",
				`env[0].value: Unsupported value: "{{memoryGiB}}": supported values: "{{memoryBytes}}", "{{memoryMiB}}", "{{fraction}}"`},
			{"half a placeholder", head + "env: [{name: A, value: \"{{memoryMiB\"}]\n",
				`env[0].value: Invalid value: "{{memoryMiB": braces that belong to no placeholder; accepted: {{memoryBytes}}, {{memoryMiB}}, {{fraction}}`},
			{"another variable's value", head + "env: [{name: A, value: \"$(HOME)\"}]\n",
				`env[0].value: Invalid value: "$(HOME)": $( is not accepted: the kubelet would put another variable of the pod in its place`},
			{"pools of a team", head + "namespaces: {names: [a]}\npools: {complete: true}\n",
				`pools: Forbidden: pools belong to the cluster's default policy, the one without namespaces`},
			{"no namespace at all", head + "namespaces: {}\n",
				`namespaces: Required value: names, or a selector that is not empty; the cluster's default policy has no namespaces at all`},
			{"a selector of every namespace", head + "namespaces: {names: [a], selector: {matchLabels: {}}}\n",
				`namespaces.selector: Required value: matchLabels or matchExpressions; an empty selector would match every namespace`},
			{"a directory that leads elsewhere", head + "mps: {pipeDirectory: /run/../etc}\n",
				`mps.pipeDirectory: Invalid value: "/run/../etc": accepted: an absolute path without "..", "//", ":" or a slash at its end, such as "/run/nvidia-mps"`},
			{"a duration without a unit", head + "guard: {grace: 5}\n",
				`guard.grace: Invalid value: "5": accepted: a duration such as "30s" or "5m" (line 2)`},
			{"an idle time that is too short", head + "idle: {report: 1ms}\n", `idle.report: Invalid value: "1ms": accepted: 1s to 720h0m0s`},
			{"idle processes terminated before they are reported", head + "idle: {report: 4h, terminate: 2h}\n",
				`idle.terminate: Invalid value: "2h0m0s": shorter than idle.report (4h0m0s): nothing is terminated before it was reported`},
			{"a negative duration", head + "guard: {grace: -5s}\n", `guard.grace: Invalid value: "-5s": accepted: 1ms to 1h0m0s`},
			{"an access that this build does not have", head + "guard: {access: claim}\n",
				`guard.access: Unsupported value: "claim": supported values: "auto", "env", "volume", "cdi"`},
			{"a toleration of nothing", head + "pod: {tolerations: [{value: x}]}\n",
				`pod.tolerations[0].key: Required value: a taint's key, or operator Exists`},
			{"a name with capitals", head + "pod: {schedulerName: Volcano}\n",
				`pod.schedulerName: Invalid value: "Volcano": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
			{"nothing", " \n",
				`policy.yaml: Invalid value: the document is empty; accepted: keys and values that begin with apiVersion: gpuslice.dev/v1`},
			{"only a comment", "# mode: off\n",
				`policy.yaml: Invalid value: the document is empty; accepted: keys and values that begin with apiVersion: gpuslice.dev/v1`},
			{"two documents", head + "---\n" + head, `policy.yaml: Invalid value: a second document begins at line 2; accepted: one`},
			{"a byte order mark", "\ufeff" + head,
				`policy.yaml: Invalid value: the document begins with a byte order mark; save it as UTF-8 without one`},
			{"another encoding", "mode: \xff\n", `policy.yaml: Invalid value: the document is not UTF-8`},
			{"a tab", head + "guard:\n\tact: always\n",
				`policy.yaml: Invalid value: line 3 is indented with a tab; use spaces (line 3: found character that cannot start any token)`},
			{"an alias bomb", "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n",
				`policy.yaml: Invalid value: line 1 uses an anchor or alias; write the value out`},
			{"a tag", head + "mode: !!str off\n", `policy.yaml: Invalid value: line 2 uses the tag "!!str"; leave it out`},
			{"a list instead of a policy", "[1, 2]\n",
				"policy.yaml: Invalid value: the document is a list; accepted: keys and values that begin with apiVersion: gpuslice.dev/v1"},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				p, problems := Parse("sys/x", []byte(c.document))
				if p != nil || len(problems) != 1 {
					t.Fatalf("policy %v, problems %v", p, problems)
				}
				if diff := cmp.Diff(c.want, problems[0].Error()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	})
	t.Run("documents are bounded before they are decoded", func(t *testing.T) {
		abuse.Report(t, abuse.Attempt{Threat: "A22", Attack: "a policy that expands enormously",
			Outcome: abuse.Denied, Words: "the last good version stays in force"})
		t.Parallel()
		for _, c := range []struct{ name, document, want string }{
			{"a mebibyte", head + strings.Repeat("# x\n", 1<<18), "the document has 1048604 bytes; accepted: at most 65536"},
			{"forty levels", head + "pods: " + strings.Repeat("[", 40) + strings.Repeat("]", 40), "is nested more than 16 levels deep"},
			{"sixty thousand levels", head + "pods: " + strings.Repeat("[", 60_000), "not YAML"},
			{"a key of a thousand letters", head + strings.Repeat("k", 1000) + ": x\n", "unknown field"},
			{"a key of sixty kilobytes", head + strings.Repeat("k", 60_000) + ": x\n", "not YAML"},
			{"five thousand unknown keys", head + manyKeys(5_000), "unknown field"},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				p, problems := Parse("sys/x", []byte(c.document))
				if p != nil || len(problems) == 0 || len(problems) > document.MaxProblems+1 || !strings.Contains(problems[0].Error(), c.want) {
					t.Fatalf("policy %v, %d problems, want %q: %.300v", p, len(problems), c.want, problems)
				}
				for _, problem := range problems {
					if len(problem.Error()) > 1500 {
						t.Errorf("a message of %d bytes", len(problem.Error()))
					}
				}
			})
		}
	})
	t.Run("every problem is reported, once", func(t *testing.T) {
		t.Parallel()
		_, problems := Parse("sys/x",
			[]byte("apiversion: gpuslice.dev/v1\nmode: on\nclasses: {a: {memory: x}, B: {}}\nlimits: {perPod: {gpus: many}}\n"))
		var got []string
		for _, p := range problems {
			got = append(got, p.Field)
		}
		want := []string{"apiversion", "classes[a].memory", "limits.perPod.gpus", "apiVersion", "mode", "classes[B]", "classes[B]"}
		if diff := cmp.Diff(want, got, cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Errorf("(-want +got):\n%s\n%v", diff, problems)
		}
	})
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: x\n", i)
	}
	return b.String()
}

// FuzzParsePolicy holds that a policy is the same when it is printed and read again, and that a document without a
// policy has a problem that says why.
func FuzzParsePolicy(f *testing.F) {
	files, err := filepath.Glob("../samples/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, problems := Parse("sys/x", data)
		if (p == nil) == (len(problems) == 0) {
			t.Fatalf("policy %v, problems %v", p, problems)
		}
		if p == nil {
			return
		}
		printed, err := yaml.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again, problems := Parse("sys/x", printed)
		if len(problems) > 0 {
			t.Fatalf("printed, it has problems: %v\n%s", problems, printed)
		}
		if diff := cmp.Diff(p, again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("printed and read again (-first +second):\n%s\n%s", diff, printed)
		}
	})
}
