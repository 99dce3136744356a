package policies

import (
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/policies/api"
)

func TestBypass(t *testing.T) {
	t.Parallel()
	t.Run("is read as it was written", func(t *testing.T) {
		t.Parallel()
		want := Bypass{Until: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Reason: "the certificate is broken", By: "alice"}
		label := map[string]string{api.LabelBypass: "true"}
		if got, ok := BypassOf(label, want.Annotations()); !ok || got != want {
			t.Errorf("%+v, %t", got, ok)
		}
		if got, ok := BypassOf(nil, want.Annotations()); ok {
			t.Errorf("annotations alone are read as a bypass: %+v", got)
		}
	})
	t.Run("is none with another value", func(t *testing.T) {
		t.Parallel()
		for _, value := range []string{"false", "", "True", "no"} {
			if got, ok := BypassOf(map[string]string{api.LabelBypass: value}, nil); ok {
				t.Errorf("%q is read as a bypass: %+v", value, got)
			}
		}
	})
	t.Run("holds without an end", func(t *testing.T) {
		t.Parallel()
		for _, until := range []string{"", "soon", "1767322800", "2030-01-02"} {
			got, ok := BypassOf(map[string]string{api.LabelBypass: "true"}, map[string]string{api.AnnotationBypassUntil: until})
			if !ok || !got.Until.IsZero() {
				t.Errorf("until %q: %+v, %t", until, got, ok)
			}
		}
	})
}
