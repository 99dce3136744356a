package quantity

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

func TestDevices(t *testing.T) {
	t.Parallel()
	t.Run("n shares of 1/n fit a device, and one more does not", func(t *testing.T) {
		for n := int64(1); n <= 4096; n++ {
			share := Device / Devices(n)
			if all := share.Times(n); all > Device || all+share <= Device {
				t.Fatalf("%d shares are %d of %d", n, all, Device)
			}
			if n <= 16 && share.Times(n) != Device {
				t.Errorf("%d shares are %d, which is not exactly a device", n, share.Times(n))
			}
		}
	})
	t.Run("reads what it writes", func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 20_000 {
			want := Devices(random.Int64N(MaxCharge >> random.IntN(40)))
			text, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			var got Devices
			if err := json.Unmarshal(text, &got); err != nil || got != want {
				t.Fatalf("%d as %s is read as %d: %v", want, text, got, err)
			}
		}
	})
	t.Run("texts", func(t *testing.T) {
		for text, want := range map[string]struct {
			devices Devices
			human   string
		}{
			"2": {2 * Device, "2"}, "0": {0, "0"}, "0.25": {Device / 4, "0.25"}, "1/3": {Device / 3, "0.334"}, "7/3": {Device / 3 * 7, "2.334"},
			"0.333": {9599990, "0.333"}, "1.5": {Device / 2 * 3, "1.5"}, "100": {100 * Device, "100"},
		} {
			var got Devices
			err := got.UnmarshalText([]byte(text))
			if err != nil || got != want.devices || got.String() != want.human {
				t.Errorf("%q is %d, %q: %v; want %d, %q", text, got, got, err, want.devices, want.human)
			}
		}
		for _, text := range []string{"", "-1", "two", "1e3", "1/0", "0.1234", "999999", "1/3/4", " 1", "500m",
			"99999999999999999999999/1", "9999999999999/1"} {
			if got := Devices(0); got.UnmarshalText([]byte(text)) == nil {
				t.Errorf("%q is read as %d", text, got)
			}
		}
	})
}
