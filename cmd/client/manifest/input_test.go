package manifest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInput(t *testing.T) {
	t.Run("documents are bounded", func(t *testing.T) {
		folder := t.TempDir()
		large := filepath.Join(folder, "large.yaml")
		write(t, large, []byte("a: "+strings.Repeat("x", 2<<20)))
		r := &Reader{Stdin: strings.NewReader(strings.Repeat("#", 2<<20))}
		for _, d := range r.Documents([]string{large, "-"}, 1<<20) {
			if d.Err == nil || !strings.Contains(d.Err.Error(), "larger than 1 MiB") {
				t.Errorf("%s: %v", d.At, d.Err)
			}
		}
	})
	// The kubelet puts the files behind two symbolic links.
	t.Run("the files of a mounted ConfigMap are read", func(t *testing.T) {
		folder := t.TempDir()
		write(t, filepath.Join(folder, "..2026_01_01", "policy.yaml"), []byte("a: b\n"))
		for link, target := range map[string]string{"..data": "..2026_01_01", "policy.yaml": "..data/policy.yaml", "more.yaml": "..data"} {
			if err := os.Symlink(target, filepath.Join(folder, link)); err != nil {
				t.Fatal(err)
			}
		}
		files, err := manifestsUnder(folder)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{filepath.Join(folder, "policy.yaml")}, files); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestSplit(t *testing.T) {
	t.Run("documents", func(t *testing.T) {
		for _, c := range []struct {
			name, text string
			want       []string // JSON, or "error"
		}{
			{"one document without a marker", "a: 1\n", []string{`{"a":1}`}},
			{"a marker before, between and after", "---\na: 1\n---\nb: 2\n---\n", []string{`{"a":1}`, `{"b":2}`}},
			{"content and comments on a marker's line", "--- {a: 1}\n--- # second\nb: 2\n", []string{`{"a":1}`, `{"b":2}`}},
			{"three dashes within a line or a text", "a: x---y\nb: |\n  ---\n  z\n", []string{`{"a":"x---y","b":"---\nz\n"}`}},
			{"a long dash begins nothing", "----: 1\n", []string{`{"----":1}`}},
			{"an end marker, and carriage returns", "a: 1\r\n...\r\n---\r\nb: 2\r\n", []string{`{"a":1}`, `{"b":2}`}},
			{"a byte order mark", "\ufeffa: 1\n", []string{`{"a":1}`}},
			{"comments only", "# a\n---\n# b\n", nil},
			{"a stream of JSON", "{\"a\":\t1}\n{\"b\":12345678901234567890}", []string{"{\"a\":\t1}", `{"b":12345678901234567890}`}},
			{"flow style that is no JSON", "{a: 1}\n", []string{`{"a":1}`}},
			{"JSON cut short", `{"a":1`, []string{"error"}},
			{"a number that no float holds stays text", "a: 1e400\n", []string{`{"a":"1e400"}`}},
		} {
			t.Run(c.name, func(t *testing.T) {
				var got []string
				for _, d := range split("f", []byte(c.text), false) {
					if d.Err != nil {
						got = append(got, "error")
						continue
					}
					got = append(got, string(d.Raw))
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	})
	t.Run("counts lines of the file", func(t *testing.T) {
		text := "a: 1\n---\nb: 2\n---\n# comment\nc: [\n"
		documents := split("f", []byte(text), true)
		last := documents[len(documents)-1]
		if last.Err == nil || last.At.String() != "f document 3" ||
			!strings.Contains(last.Err.Error(), "line 6") && !strings.Contains(last.Err.Error(), "line 7") {
			t.Errorf("%s: %v", last.At, last.Err)
		}
	})
	t.Run("denies other than UTF-8", func(t *testing.T) {
		documents := split("f", []byte("a: \xff\xfe\n"), true)
		if len(documents) != 1 || documents[0].Err == nil || !strings.Contains(documents[0].Err.Error(), "UTF-8") {
			t.Errorf("documents: %+v", documents)
		}
	})
}

// FuzzDocuments: no input makes the reader panic, and every object that is read has a kind.
func FuzzDocuments(f *testing.F) {
	for _, seed := range []string{"a: 1\n---\n{}", `{"kind":"List","apiVersion":"v1","items":[{},null,1]}`, "--- x\n...\n",
		"kind: PodList\napiVersion: v1\nitems: [{metadata: {name: a}}]\n", "metadata: {labels: {a: 1}}\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for i, d := range split("f", text, true) {
			objects, unread := d.Objects()
			for _, o := range objects {
				if o.Kind == "" || o.APIVersion == "" || len(o.Raw) == 0 {
					t.Errorf("document %d: an object without a kind: %+v", i, o)
				}
				templates, err := Templates(o)
				if err != nil && !strings.Contains(err.Error(), "pod templates") {
					t.Errorf("document %d: %v", i, err)
				}
				for _, template := range templates {
					template.Path()
					if _, err := template.Pod(o); err != nil && !strings.Contains(err.Error(), "metadata") {
						t.Errorf("document %d: %v", i, err)
					}
				}
			}
			for _, failed := range unread {
				if failed.Error() == "" || strings.Contains(fmt.Sprint(failed), "%!") {
					t.Errorf("document %d: %q", i, failed)
				}
			}
		}
	})
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
