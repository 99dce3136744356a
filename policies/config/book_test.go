package config

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
)

func naming(name string, namespaces ...string) *Policy {
	return &Policy{Name: name, Namespaces: &NamespaceMatch{Names: namespaces}}
}

func selectingBy(name, key, value string) *Policy {
	return &Policy{Name: name, Namespaces: &NamespaceMatch{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}}
}

func TestBook(t *testing.T) {
	t.Parallel()
	t.Run("the most specific policy governs a namespace", func(t *testing.T) {
		t.Parallel()
		cluster, second := &Policy{Name: "sys/default"}, &Policy{Name: "sys/second"}
		team := api.Namespace{Name: "team-a", Labels: map[string]string{"tier": "gold", "site": "x"}}
		broken := &Policy{Name: "sys/broken", Namespaces: &NamespaceMatch{
			Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "?"}}},
		}}
		for _, c := range []struct {
			name      string
			documents []*Policy
			want      string // the policy's name
			err       string
		}{
			{name: "without any policy none governs"},
			{name: "the default governs what no other does",
				documents: []*Policy{cluster, naming("sys/b", "team-b"), selectingBy("sys/s", "tier", "free")}, want: "sys/default"},
			{name: "a selector beats the default", documents: []*Policy{cluster, selectingBy("sys/s", "tier", "gold")}, want: "sys/s"},
			{name: "a name beats a selector", documents: []*Policy{cluster, selectingBy("sys/s", "tier", "gold"), naming("sys/a", "team-a")},
				want: "sys/a"},
			{name: "a name beats two selectors that meet",
				documents: []*Policy{selectingBy("sys/s", "tier", "gold"), selectingBy("sys/r", "site", "x"), naming("sys/a", "team-a")},
				want:      "sys/a"},
			{name: "two selectors that meet are named, in order",
				documents: []*Policy{cluster, selectingBy("sys/s", "tier", "gold"), selectingBy("sys/r", "site", "x")},
				err:       `policies sys/r and sys/s claim namespace "team-a" by its labels with equal right; name it in one of them, or make their selectors exclude each other`},
			{name: "two that name it are named", documents: []*Policy{naming("sys/a", "team-a"), naming("sys/b", "team-b", "team-a")},
				err: `policies sys/a and sys/b claim namespace "team-a" with equal right; name it in one of them only`},
			{name: "two defaults are named", documents: []*Policy{second, cluster}, err: "policies sys/default and sys/second claim all namespaces"},
			{name: "two defaults concern no namespace with a policy of its own",
				documents: []*Policy{second, cluster, naming("sys/a", "team-a")}, want: "sys/a"},
			{name: "a selector that cannot be read may have meant any namespace", documents: []*Policy{cluster, broken},
				err: "read the selector of policy sys/broken"},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				got, err := NewBook(c.documents).For(team)
				if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				name := ""
				if got != nil {
					name = got.Name
				}
				if name != c.want {
					t.Errorf("policy %q governs, want %q", name, c.want)
				}
			})
		}
	})
	t.Run("conflicts are found before a namespace meets them", func(t *testing.T) {
		t.Parallel()
		selectors := []*Policy{selectingBy("sys/s", "tier", "gold"), selectingBy("sys/r", "site", "x")}
		for _, c := range []struct {
			name       string
			documents  []*Policy
			namespaces []api.Namespace
			want       int
		}{
			{"documents that do not meet", []*Policy{{Name: "d"}, naming("a", "x"), naming("b", "y")}, []api.Namespace{{Name: "x"}, {Name: "z"}}, 0},
			{"a name of no namespace yet", []*Policy{naming("a", "x"), naming("b", "x")}, nil, 1},
			{"two defaults", []*Policy{{Name: "a"}, {Name: "b"}}, []api.Namespace{{Name: "x"}, {Name: "y"}}, 1},
			{"selectors that meet in no namespace", selectors, []api.Namespace{{Name: "x", Labels: map[string]string{"tier": "gold"}}}, 0},
			{"selectors that meet in two namespaces", selectors, []api.Namespace{
				{Name: "x", Labels: map[string]string{"tier": "gold", "site": "x"}},
				{Name: "y", Labels: map[string]string{"tier": "gold", "site": "x"}}}, 2},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				if got := NewBook(c.documents).Conflicts(c.namespaces); len(got) != c.want {
					t.Errorf("got %v, want %d", got, c.want)
				}
			})
		}
	})
	t.Run("the first default policy declares the pools", func(t *testing.T) {
		t.Parallel()
		if p := NewBook(nil).Default(); p != nil {
			t.Errorf("no policy, default %v", p)
		}
		if p := NewBook([]*Policy{{Name: "b"}, {Name: "a"}, naming("0", "x")}).Default(); p == nil || p.Name != "a" {
			t.Errorf("default %v", p)
		}
	})
}
