package doctor

import (
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
)

func TestExit(t *testing.T) {
	for _, c := range []struct {
		name   string
		levels []Level
		want   error
	}{
		{"nothing", nil, nil},
		{"nothing above a note", []Level{OK, Note}, nil},
		{"a warning", []Level{Warning, Note}, cli.ExitError(cli.ExitWarned)},
		{"a problem beside a warning", []Level{Warning, Problem}, cli.ExitError(cli.ExitDenied)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []Finding
			for _, level := range c.levels {
				all = append(all, newFinding(level, "it is so"))
			}
			if got := exit(all); got != c.want {
				t.Errorf("exit: %v, want %v", got, c.want)
			}
		})
	}
}

// TestVerifyNothing: where an installation was removed, verify has one finding, with what is left, and tries nothing.
func TestVerifyNothing(t *testing.T) {
	client := fake.NewClientset()
	all := verify(t.Context(), client, facts(t, nodes("l4-timeslicing-renamed"), namespace("a", "", "mode: transparent\n")), "")
	if len(all) != 1 || all[0].Level != Problem || all[0].Check != "installation" || !strings.Contains(all[0].Remedy, "gpuslice uninstall") ||
		len(client.Actions()) > 0 {
		t.Errorf("%d requests, and %+v", len(client.Actions()), all)
	}
	unknown := verify(t.Context(), client, facts(t, func(_ *testing.T, f *Facts) {
		f.Unread = []Unread{{whatWebhook, errNoFile}}
	}), "")
	if len(unknown) == 1 {
		t.Errorf("what cannot be read is missing: %+v", unknown)
	}
}
