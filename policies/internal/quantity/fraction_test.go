package quantity

import (
	"testing"
)

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
