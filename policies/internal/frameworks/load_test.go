package frameworks

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	t.Run("are sound", func(t *testing.T) {
		t.Parallel()
		read := []string{"profiles/" + pid1File}
		for _, p := range table {
			read = append(read, "profiles/"+p.Name+".yaml")
			if len(p.Sources) == 0 {
				t.Errorf("%s names no source", p.Name)
			}
		}
		slices.Sort(read)
		if there, err := filepath.Glob("profiles/*"); err != nil || !slices.Equal(there, read) {
			t.Errorf("the files are %v, and read are profiles of %v: %v", there, read, err)
		}
		for _, name := range reservedVariables() {
			if strings.HasPrefix(name, "NVIDIA_") || strings.HasPrefix(name, "CUDA_MPS_") {
				t.Errorf("%s belongs to the driver, not to a framework", name)
			}
		}
		if pid1.images == nil {
			t.Error("no image needs PID 1")
		}
	})
	t.Run("never set both of two names", func(t *testing.T) {
		t.Parallel()
		// Each of these ends the framework, or turns its cap off, when set beside ours.
		for _, name := range []string{"PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "XLA_CLIENT_MEM_FRACTION",
			"XLA_PYTHON_CLIENT_ALLOCATOR", "TF_GPU_ALLOCATOR"} {
			if slices.Contains(reservedVariables(), name) {
				t.Errorf("a profile may set %s", name)
			}
		}
	})
}

// reservedVariables are the variables that some profile may set.
func reservedVariables() (names []string) {
	for _, p := range table {
		names = slices.AppendSeq(names, maps.Keys(p.Variables))
	}
	return names
}

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	t.Run("have the path of the mistake", func(t *testing.T) {
		t.Parallel()
		const head = "name: xy\ntitle: X\ndescription: d\nmatch: {images: [a/b]}\nvariables: {A: {}}\n"
		tests := []struct {
			name, text, want string
		}{
			{"an unknown key", head + "rule: []", `unknown field "rule"`},
			{"a key in other case", head + "Rules: []", `unknown field "Rules"`},
			{"an unknown key deep down", head + "rules: [{set: [{name: A, value: b}]}]", `unknown field "rules[0].set[0].value"`},
			{"a repeated key", head + "name: y", `already set in map`},
			{"an unknown formula", head + "rules: [{set: [{name: A, parts: ['{{fractoin}}']}]}]",
				`rules[0].set[0].parts[0]: formula "fractoin" is none of allocConf, bytes,`},
			{"a formula without its settings", head + "rules: [{set: [{name: A, parts: ['{{allocConf}}']}]}]", "needs allocConf"},
			{"a space in a value", head + "rules: [{set: [{name: A, parts: ['a b']}]}]", "has a space"},
			{"an empty part", head + "rules: [{set: [{name: A, parts: ['']}]}]", "is empty"},
			{"no part", head + "rules: [{set: [{name: A}]}]", "rules[0].set[0].parts: is required"},
			{"a variable that is not listed", head + "rules: [{set: [{name: B, parts: [x]}]}]", `"B" is not among variables`},
			{"an unknown view", head + "rules: [{when: {views: [half]}}]", `rules[0].when.views: "half" is no view`},
			{"a version that is none", head + "rules: [{when: {from: new}}]", `rules[0].when.from: "new" is no version`},
			{"an argument without words", head + "arguments: [{flag: --f, most: fraction, views: [whole]}]",
				"arguments[0]: flag and default are required"},
			{"an argument for no command", head + "arguments: [{flag: --f, most: fraction, views: [whole], default: d, appendTo: [' ']}]",
				"arguments[0].appendTo[0]: is empty"},
			{"an argument with an unknown formula",
				head + "arguments: [{flag: --f, most: all, views: [whole], default: d}]", `arguments[0].most: formula "all"`},
			{"a pattern with a hole", strings.Replace(head, "a/b", "a//b", 1), "match.images[0]: image pattern"},
			{"a pattern that is none", strings.Replace(head, "a/b", "'a/['", 1), "syntax error in pattern"},
			{"a regular expression that is none", head + "versions: [{images: [a/b], tag: '('}]", "versions[0].tag: error parsing regexp"},
			{"steps out of order", head + "versions: [{images: [a/b], steps: [{from: '2.0', is: '1.0'}, {from: '1.9', is: '1.1'}]}]",
				`versions[0].steps[1].from: "1.9" does not come after "2.0"`},
			{"a step without an end", head + "versions: [{images: [a/b], steps: [{from: '2.0'}]}]", "from and is are required"},
			{"versions without images", head + "versions: [{tag: x}]", "versions[0].images: is required"},
			{"two places for a version", head + "versions: [{images: [a/b], tag: t, repository: r}]", "exclude each other"},
			{"names that leave out the variable", strings.Replace(head, "A: {}", "A: {names: [B]}", 1), "variables.A.names: leaves out A itself"},
			{"no name for a variable", strings.Replace(head, "A: {}", "A-B: {}", 1), `"A-B" is no name for a variable`},
			{"a reader that does not exist", strings.Replace(head, "A: {}", "A: {reads: percent}", 1), `variables.A.reads: "percent" is none of`},
			{"a flag without a dash", strings.Replace(head, "A: {}", "A: {flags: [f]}", 1), `"f" does not begin with a dash`},
			{"the reserved name", strings.Replace(head, "name: xy", "name: none", 1), `"none" is no name for a profile`},
			{"no way to recognise it", "name: xy\ntitle: X\ndescription: d\nmatch: {}", "match: names neither images nor commands"},
			{"no title", strings.Replace(head, "title: X", "title: ''", 1), "title: is required"},
			{"an uncap without words", head + "uncaps: [{name: A}]", "uncaps[0]: name and says are required"},
			{"no YAML", "\t{", "decode YAML"},
			{"the framework beneath does not exist", head + "runs: {profile: zz}", `"zz" is no profile that stands on its own`},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				_, _, err := load(fstest.MapFS{"profiles/x.yaml": {Data: []byte(tt.text)}})
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %q in it", err, tt.want)
				}
			})
		}
	})
	t.Run("the list of inits is checked", func(t *testing.T) {
		t.Parallel()
		for text, want := range map[string]string{
			"description: d\nimages: ['a//b']\ncommands: []": "images[0]: image pattern",
			"description: d\nimages: []\ncommands: [init]":   `commands[0]: "init" is no absolute path`,
			"description: d\nimage: []":                      `unknown field "image"`,
		} {
			_, _, err := load(fstest.MapFS{"profiles/pid1.yaml": {Data: []byte(text)}})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: got %v, want %q in it", text, err, want)
			}
		}
	})
	t.Run("two files of one name are denied", func(t *testing.T) {
		t.Parallel()
		one := &fstest.MapFile{Data: []byte("name: xy\ntitle: X\ndescription: d\nmatch: {images: [a/b]}\n")}
		_, _, err := load(fstest.MapFS{"profiles/a.yaml": one, "profiles/b.yaml": one})
		if err == nil || !strings.Contains(err.Error(), "profile xy is described twice") {
			t.Errorf("got %v", err)
		}
	})
}

func TestValidateSettings(t *testing.T) {
	t.Parallel()
	t.Run("of the policy", func(t *testing.T) {
		t.Parallel()
		tests := []struct {
			name, profile string
			s             Switch
			want          string // "" where it is sound
		}{
			{"nothing said", "pytorch", Switch{}, ""},
			{"all that there is", "pytorch", Switch{Enabled: new(true), Version: "2.4", Arguments: "warn",
				AllocConf: new("max_split_size_mb:64,garbage_collection_threshold:0.8"), Images: []string{"*/train"}}, ""},
			{"settings turned off", "pytorch", Switch{AllocConf: new("")}, ""},
			{"a profile that does not exist", "torch", Switch{}, `frameworks.torch: Unsupported value: "torch"`},
			{"a version that is none", "pytorch", Switch{Version: "latest"}, "frameworks.pytorch.version: Invalid value"},
			{"arguments rewritten", "vllm", Switch{Arguments: "rewrite"}, ""},
			{"a shim", "pytorch", Switch{Shim: "on"}, ""},
			{"a shim of another word", "pytorch", Switch{Shim: "true"},
				`frameworks.pytorch.shim: Unsupported value: "true": supported values: "off", "variable", "on", "env-files"`},
			{"a shim of a framework that has none", "jax", Switch{Shim: "on"}, "frameworks.jax.shim: Forbidden: JAX has no shim"},
			{"arguments otherwise", "vllm", Switch{Arguments: "Warn"}, `supported values: "warn", "rewrite", "deny"`},
			{"settings of a framework that has none", "jax", Switch{AllocConf: new("a:b")}, "frameworks.jax.allocConf: Forbidden"},
			{"a key that does not exist", "pytorch", Switch{AllocConf: new("max_split:64")}, `supported values: "expandable_segments"`},
			{"a key that takes the cap away", "pytorch", Switch{AllocConf: new("backend:cudaMallocAsync")}, `Unsupported value: "backend"`},
			{"the key that is ours", "pytorch", Switch{AllocConf: new("per_process_memory_fraction:0.5")}, "Unsupported value"},
			{"a split that old versions die of", "pytorch", Switch{AllocConf: new("max_split_size_mb:20")}, "accepted is"},
			{"a truth in lower case", "pytorch", Switch{AllocConf: new("expandable_segments:true")}, "True|False"},
			{"a key twice", "pytorch", Switch{AllocConf: new("max_split_size_mb:64,max_split_size_mb:64")}, "Duplicate value"},
			{"a comma at the end", "pytorch", Switch{AllocConf: new("max_split_size_mb:64,")}, `Unsupported value: ""`},
			{"a space", "pytorch", Switch{AllocConf: new("max_split_size_mb: 64")}, "accepted is"},
			{"no value", "pytorch", Switch{AllocConf: new("expandable_segments")}, "accepted is"},
			{"a pattern that is none", "pytorch", Switch{Images: []string{"a", "b["}}, "frameworks.pytorch.images[1]"},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				err := SwitchErrors(field.NewPath("frameworks").Child(tt.profile), tt.profile, tt.s).ToAggregate()
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %q", err, tt.want)
				}
			})
		}
	})
	// Every key of the settings is either validated or never taken from policy.
	t.Run("every key of the allocator is validated or never taken from policy", func(t *testing.T) {
		t.Parallel()
		for _, key := range slices.Sorted(maps.Keys(named(table, "pytorch").conf)) {
			for _, value := range []string{"", "x", "-1", "0", "1e9"} {
				s := Switch{AllocConf: new(key + ":" + value)}
				if errs := SwitchErrors(field.NewPath("p"), "pytorch", s); len(errs) == 0 {
					t.Errorf("%s:%s is accepted", key, value)
				}
			}
		}
	})
}
