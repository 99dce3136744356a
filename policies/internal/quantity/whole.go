package quantity

import "k8s.io/apimachinery/pkg/api/resource"

// WholeUnits is q rounded up, at most MaxCharge. It looks at the exponent before it computes: stored pods may hold
// quantities such as 1e10000000, which cost seconds to compare and which Value() turns into 0.
func WholeUnits(q resource.Quantity) int64 {
	if q.Sign() <= 0 {
		return 0
	}
	if n, ok := q.AsInt64(); ok {
		return min(n, MaxCharge)
	}
	const largestExponent, largestBits = 18, 127
	if d := q.AsDec(); d.Scale() < -largestExponent || d.UnscaledBig().BitLen() > largestBits {
		return MaxCharge
	}
	if q.CmpInt64(MaxCharge) >= 0 {
		return MaxCharge
	}
	return q.Value()
}

// MaxCharge bounds every dimension, so that sums of charges cannot overflow. Memory is bounded by MaxMemory, which is
// less, so that every sum can be printed and read back.
const MaxCharge = 1 << 40

// Product is a times b, at most MaxCharge.
func Product(a, b int64) int64 {
	if a > 0 && b > MaxCharge/a {
		return MaxCharge
	}
	return a * b
}

// Sum is a plus b, at most MaxCharge.
func Sum(a, b int64) int64 { return min(a+b, MaxCharge) }

// WholeUnitsBelow is q rounded down, at most MaxCharge.
func WholeUnitsBelow(q resource.Quantity) int64 {
	n := WholeUnits(q)
	if n > 0 && n < MaxCharge && q.CmpInt64(n) < 0 {
		n--
	}
	return n
}

// OrZero reads a quantity of the installation's settings, which were validated when they were read.
func OrZero(text string) resource.Quantity {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}
	}
	return q
}
