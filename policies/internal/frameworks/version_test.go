package frameworks

import "testing"

func TestVersion(t *testing.T) {
	t.Parallel()
	t.Run("is read from tags", func(t *testing.T) {
		t.Parallel()
		tests := []struct {
			text, want string // "" where there is no version
			pre        bool
		}{
			{"2.4.0", "2.4.0", false},
			{"v0.6.3.post1", "0.6.3.post1", false},
			{"2.10", "2.10", false},
			{"2.4.0-cuda12.1-cudnn9-devel", "2.4.0", false},
			{"2.10.0a0+b4e4ee81d3", "2.10.0a0", true},
			{"2.10.0rc2", "2.10.0rc2", true},
			{"2.10.0-rc.2", "2.10.0-pre", true},
			{"2.10.0.dev20251001", "2.10.0.dev20251001", true},
			{"2.10.0-nightly-cuda12", "2.10.0-pre", true},
			{"2.10.0-dev", "2.10.0-pre", true},
			{"1.2.3.4", "1.2.3.4", false},
			{"latest", "", false},
			{"2", "", false},
			{"2.x", "", false},
			{"2024-05-20", "", false},
			{"2.4.0cuda", "", false},
			{"1234567.1", "", false},
			{"-1.2", "", false},
			{"٢.٤", "", false},
			{"", "", false},
		}
		for _, tt := range tests {
			t.Run(tt.text, func(t *testing.T) {
				t.Parallel()
				v, ok := parseVersion(tt.text)
				if v.String() != tt.want || ok != (tt.want != "") || v.pre != tt.pre {
					t.Errorf("got %q, pre-release %v, ok %v", v, v.pre, ok)
				}
			})
		}
	})
	t.Run("is ordered", func(t *testing.T) {
		t.Parallel()
		order := []string{"0.9.9", "1.9", "1.10.0a0", "1.10", "1.13.1", "2.0", "2.9.1", "2.10.0rc1", "2.10", "2.10.1", "2.11.0a0", "2.11"}
		for i, a := range order {
			for j, b := range order {
				v, _ := parseVersion(a)
				w, _ := parseVersion(b)
				if got, want := v.compare(w), min(max(i-j, -1), 1); got != want {
					t.Errorf("%s and %s: got %d, want %d", a, b, got, want)
				}
			}
		}
	})
}

func FuzzVersion(f *testing.F) {
	for _, seed := range []string{"", "v0.6.3.post1", "2.10.0a0+b4e", "2.4.0-cuda12.1", "2.10.0-rc.2", "1..2", "9.9.9.9.9", "2.1dev"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, ok := parseVersion(text)
		if ok != v.known() {
			t.Fatalf("%q: ok %v, text %q", text, ok, v.text)
		}
		if !ok {
			return
		}
		again, ok := parseVersion(v.String())
		if !ok || v.compare(again) != 0 || again.String() != v.String() {
			t.Errorf("%q is %q, and read again %q", text, v, again)
		}
	})
}
