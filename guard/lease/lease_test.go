package lease

import (
	"reflect"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]Report{
		"nothing":  {},
		"a reason": {NotEnforced: map[string]string{"u-1": "gpu0: it is \"lost\""}},
		"use":      {Used: map[string]int64{"u-1": 7, "u-2": 0}},
		"both":     {NotEnforced: map[string]string{"u-1": "a"}, Used: map[string]int64{"u-2": 1 << 40}},
	} {
		a := r.Annotations()
		if got := Read(a); !reflect.DeepEqual(got, r) {
			t.Errorf("%s: %q is read as %+v, want %+v", name, a, got, r)
		}
		if len(a) != 2 || (a[AnnotationUsed] == "") != (len(r.Used) == 0) {
			t.Errorf("%s: annotations %q", name, a)
		}
	}
}

func TestReadOthers(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]map[string]string{
		"none":         nil,
		"another form": {AnnotationUsed: `{"u-1": {"mib": 7}}`, AnnotationNotEnforced: `["u-1"]`},
		"too long":     {AnnotationNotEnforced: `{"u-1": "` + strings.Repeat("x", maxText) + `"}`},
		"too large":    {AnnotationUsed: `{"u-1": 9223372036854775808}`},
	} {
		if got := Read(a); len(got.NotEnforced)+len(got.Used) > 0 {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
}

// FuzzRead: whatever a Lease has, what is read of it is written and read again as the same.
func FuzzRead(f *testing.F) {
	f.Add(`{"u-1":"it is lost"}`, `{"u-1":7}`)
	f.Add(`{`, `null`)
	f.Fuzz(func(t *testing.T, reasons, used string) {
		first := Read(map[string]string{AnnotationNotEnforced: reasons, AnnotationUsed: used})
		a := first.Annotations()
		if len(a[AnnotationNotEnforced]) > maxText || len(a[AnnotationUsed]) > maxText {
			return // escapes make a text longer
		}
		again := Read(a)
		if len(again.NotEnforced) != len(first.NotEnforced) || len(again.Used) != len(first.Used) {
			t.Errorf("%+v is read as %+v", first, again)
		}
	})
}
