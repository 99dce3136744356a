package pools

import (
	"fmt"
	"testing"
	"testing/quick"

	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// cards are what nvidia-smi and GPU feature discovery call the whole memory of real devices, in MiB.
func cards() map[string]quantity.MiB {
	return map[string]quantity.MiB{
		"T4": 15360, "V100-16GB": 16384, "V100-32GB": 32768, "A10": 23028, "L4": 23034, "A30": 24576, "RTX 4090": 24564,
		"A100-40GB": 40960, "A100-80GB": 81920, "A40": 46068, "L40S": 46068, "RTX 6000 Ada": 49140, "H100-80GB": 81559,
		"H100-NVL": 95830, "H200": 143771, "B200": 183359,
	}
}

func TestUsable(t *testing.T) {
	t.Parallel()
	t.Run("an nth fits n replicas of every card", func(t *testing.T) {
		t.Parallel()
		for card, total := range cards() {
			for n := 2; n <= quantity.MaxFractions; n++ {
				p := Pool{Strategy: "time-slicing", DeviceMemory: total, Replicas: n}
				p.keepFree(config.ReserveSpec{})
				milli := (1000 + n - 1) / n // the API server rounds quantities up
				for _, text := range []string{fmt.Sprintf("0.%03d", milli), fmt.Sprintf("%d.%dpct", milli/10, milli%10)} {
					f, err := quantity.ParseFraction(text)
					if err != nil {
						t.Fatal(err)
					}
					slice := f.Of(p.Burst())
					if slice > p.Usable() {
						t.Errorf("%s: %s of %d MiB is %d MiB, and one of %d replicas holds %d", card, text, p.Burst(), slice, n, p.Usable())
					}
					if all := slice * quantity.MiB(n); all > total-p.Reserve {
						t.Errorf("%s: %d slices of %s add up to %d of %d MiB", card, n, text, all, total-p.Reserve)
					}
					// Neither is a slice much smaller than it has to be: at most one replica more is assumed.
					if least := p.Burst()/quantity.MiB(n+1) - 1; slice < least {
						t.Errorf("%s: %s is %d MiB, less than the %d of %d replicas", card, text, slice, least, n+1)
					}
				}
			}
		}
	})
	t.Run("all of a device is not more than the device", func(t *testing.T) {
		t.Parallel()
		for card, total := range cards() {
			for n := 1; n <= quantity.MaxReplicas; n *= 2 {
				p := Pool{Strategy: "time-slicing", DeviceMemory: total, Replicas: n}
				p.keepFree(config.ReserveSpec{})
				if got := p.Usable() * quantity.MiB(n); got > total-max(total*3/100, 512) {
					t.Errorf("%s: %d replicas of %d MiB are %d of %d", card, n, p.Usable(), got, total)
				}
			}
		}
	})
}

// TestGranularSum holds what the scheduler's sum rests on, for every device and number of parts that a policy may declare.
func TestGranularSum(t *testing.T) {
	t.Parallel()
	for _, total := range []quantity.MiB{4096, 15360, 23034, 24576, 49140, 81920, 143771} {
		for replicas := 2; total/quantity.MiB(replicas) >= 128; replicas++ {
			p := Pool{Granular: true, Strategy: "time-slicing", DeviceMemory: total, Replicas: replicas}
			p.keepFree(config.ReserveSpec{})
			if all := p.Granule() * quantity.MiB(replicas); p.Granule() < 1 || all != p.Usable() || all+p.Reserve > total {
				t.Fatalf("%d parts of %s: %s each, %s usable, %s kept free", replicas, total, p.Granule(), p.Usable(), p.Reserve)
			}
		}
	}
}

// TestUnits: parts hold the slice, no part is idle, and a larger slice takes no fewer.
func TestUnits(t *testing.T) {
	t.Parallel()
	units := func(granule, slice quantity.MiB) int64 {
		p := Pool{Strategy: "time-slicing", Granular: true, DeviceMemory: granule * 4096, Replicas: 4096}
		if p.Granule() != granule || p.Held(slice) != quantity.MiB(p.Units(slice))*granule {
			t.Errorf("parts of %s, %s held", p.Granule(), p.Held(slice))
		}
		return p.Units(slice)
	}
	holds := func(granule, slice, more uint16) bool {
		g, a := quantity.MiB(granule)+1, quantity.MiB(slice)+1
		n := units(g, a)
		return quantity.MiB(n)*g >= a && quantity.MiB(n-1)*g < a && n <= units(g, a+quantity.MiB(more))
	}
	if err := quick.Check(holds, &quick.Config{MaxCount: 20000}); err != nil {
		t.Error(err)
	}
}
