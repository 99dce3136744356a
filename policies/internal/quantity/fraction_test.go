package quantity

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestGPUText(t *testing.T) {
	for text, want := range map[string]string{"250m": "0.25", "0.334": "0.334", "1500m": "1.5", "1": "1", "0": "0",
		"1m": "0.001", "-250m": "-250m", "65.5": "65500m"} {
		if got := GPUText(resource.MustParse(text)); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
}

func TestFraction(t *testing.T) {
	t.Parallel()
	t.Run("reads as it prints", func(t *testing.T) {
		for micros := int64(1); micros <= Micro; micros += 7 {
			want := reduceFraction(micros)
			text, err := want.MarshalText()
			if err != nil {
				t.Fatal(err)
			}
			var got Fraction
			if err := got.UnmarshalText(text); err != nil || got != want {
				t.Fatalf("%v prints as %s, which reads as %v, %v", want, text, got, err)
			}
		}
	})
}

func TestParseFractionOfTwoNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Fraction{"1/4": {1, 4}, "1/3": {1, 3}, "1/1": {1000, 1000},
		"3/4": {750000, Micro}, "2/3": {666667, Micro}} {
		got, err := ParseFraction(text)
		if err != nil || got.Num*want.Den != want.Num*got.Den {
			t.Errorf("%s is read as %v, %v, want %v", text, got, err, want)
		}
		if again, err := ParseFraction(got.String()); err != nil || again != got {
			t.Errorf("%s prints as %s, which reads as %v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{"4/3", "0/4", "1/0", "1/4/2", "/4", "1/", "1/1000", "-1/4"} {
		if got, err := ParseFraction(text); err == nil {
			t.Errorf("%s is read as %v", text, got)
		}
	}
}
