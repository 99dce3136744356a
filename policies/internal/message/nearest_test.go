package message

import "testing"

func TestNearest(t *testing.T) {
	words := []string{"", "memory", "memory-limit", "fraction", "mig", "mps", "enforcementMode"}
	for word, want := range map[string]string{
		"memroy": "memory", "fractino": "fraction", "memory_limit": "memory-limit", "Fractoin": "fraction", "enforcmentMode": "enforcementMode",
		"mgi": "mig", "mis": "mig", "colour": "", "": "", "m": "",
	} {
		if got := Nearest(word, words); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
