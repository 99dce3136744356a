package mig

import (
	"fmt"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]Profile{
		"1g.5gb":         {Slices: 1, Gigabytes: 5},
		"7g.80gb":        {Slices: 7, Gigabytes: 80},
		"1c.2g.10gb":     {Compute: 1, Slices: 2, Gigabytes: 10},
		"1g.10gb+me":     {Slices: 1, Gigabytes: 10, Attributes: "+me"},
		"1g.10gb.me":     {Slices: 1, Gigabytes: 10, Attributes: ".me"},
		"1g.24gb-me":     {Slices: 1, Gigabytes: 24, Attributes: "-me"},
		"4g.96gb+me.all": {Slices: 4, Gigabytes: 96, Attributes: "+me.all"},
	} {
		if got, ok := Parse(name); !ok || got != want {
			t.Errorf("%s: %+v %v, want %+v", name, got, ok, want)
		}
	}
	for _, name := range []string{"", "1g", "10gb", "0g.10gb", "1g.010gb", "1g.10GB", "1g.10000gb",
		"1gx10gb", "1g.10gb+", "1g.10gb..me", "1g.10gb+Me",
		" 1g.10gb", "1g.10gb\n", "mig-1g.10gb", "10g.10gb", "1g.10gb.replicas1"} {
		if got, ok := Parse(name); ok {
			t.Errorf("%q: %+v", name, got)
		}
	}
}

func TestNamesResource(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"1g.10gb": true, "1g.10gb.me": true, "1g.24gb-me": true, "1g.10gb+me": false, "1c.2g.10gb": true,
		"small": true, "1g.10gb.replicas1": true, "Small": false, "": false, ".small": false, "a/b": false} {
		if NamesResource(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// FuzzParse finds names of which something is lost.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"1g.10gb", "1c.2g.10gb", "1g.10gb+me.all", "1g.24gb-me", "0g.5gb"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		p, ok := Parse(name)
		if !ok {
			return
		}
		text := fmt.Sprintf("%dg.%dgb%s", p.Slices, p.Gigabytes, p.Attributes)
		if p.Compute > 0 {
			text = fmt.Sprintf("%dc.%s", p.Compute, text)
		}
		if text != name {
			t.Errorf("%q is read as %+v", name, p)
		}
	})
}
