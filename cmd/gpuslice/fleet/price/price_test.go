package price

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	short := func(name string) bool { return len(name) < 5 }
	for text, want := range map[string]string{
		"a100": `--price "a100": accepted: NAME=PRICE`, "=1": "accepted", "a100=x": "accepted", "a100=": "accepted", "a100=-1": "accepted",
		"a100=NaN": "accepted", "a100=Inf": "accepted", "a100=1e999": "accepted", "h100e=1": "accepted", "a100=1,a100=2": "a100 has two prices",
	} {
		if l, err := Parse(strings.Split(text, ","), "NAME=PRICE", short); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, error %v, want %q", text, l, err, want)
		}
	}
	if l, err := Parse([]string{"a100=2.40", "*=0"}, "", short); err != nil || l["a100"] != 2.40 || len(l) != 2 {
		t.Errorf("%v, error %v", l, err)
	}
}

func TestOf(t *testing.T) {
	all := List{"*": 1, "a": 2, "a1": 3, "a2": 4, "a1x": 5}
	for device, want := range map[string]string{"a": "a", "a1": "a1", "a9": "a", "a1xy": "a1x", "b": "*", "*": "*", "": "*"} {
		if amount, name := all.Of(device, func(n string) bool { return strings.HasPrefix(device, n) }); name != want || amount != all[want] {
			t.Errorf("%q: %g by %q, want %q", device, amount, name, want)
		}
	}
	if amount, name := (List{"a2": 4, "a1": 3}).Of("a", func(string) bool { return true }); amount != 3 || name != "a1" {
		t.Errorf("of two as long: %g by %q", amount, name)
	}
	if _, name := (List{"a": 1}).Of("b", func(string) bool { return false }); name != "" {
		t.Errorf("by %q", name)
	}
}
