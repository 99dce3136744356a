package review

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWarnings(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ in, want []string }{
		"none":                          {nil, nil},
		"a short one as it is":          {[]string{"a"}, []string{"a"}},
		"control characters go":         {[]string{"a\n\x1b[31mb\x00"}, []string{"a  [31mb "}},
		"broken UTF-8 goes":             {[]string{"a\xffb"}, []string{"a b"}},
		"ten are kept":                  {strings.Split("abcdefghij", ""), strings.Split("abcdefghij", "")},
		"of eleven the rest is counted": {strings.Split("abcdefghijk", ""), append(strings.Split("abcdefghi", ""), "and 2 more lines")},
		"a long one is folded": {[]string{strings.Repeat("x", 200) + " " + strings.Repeat("y", 200)},
			[]string{strings.Repeat("x", 200), strings.Repeat("y", 200)}},
		"one that just fits": {[]string{strings.Repeat("x", MaxWarning)}, []string{strings.Repeat("x", MaxWarning)}},
		"a long word is cut": {[]string{strings.Repeat("x", 300)}, []string{strings.Repeat("x", MaxWarning-3) + "..."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, Warnings(tt.in)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
