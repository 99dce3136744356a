package quantity

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/policies/internal/message"
)

// FormatRatio prints num/den floored at six decimals, without an exponent: the form that frameworks parse. It returns
// "" if the value would not lie in (0, 1).
func FormatRatio(num, den int64) string {
	if num <= 0 || den <= 0 || num >= den {
		return ""
	}
	micros := num * Micro / den
	if micros == 0 {
		return ""
	}
	text := strconv.FormatInt(micros, 10)
	return "0." + "000000"[len(text):] + text
}

// Fraction is a share of a device, Num/Den in (0, 1]. The zero Fraction means "not requested".
type Fraction struct{ Num, Den int64 }

const Micro = 1_000_000

// Zero reports whether no fraction was requested.
func (f Fraction) Zero() bool { return f.Num == 0 }

// Of is f x m, rounded down.
func (f Fraction) Of(m MiB) MiB { return MiB(int64(m) * f.Num / f.Den) }

// String prints f as an author may write it, so that advice can be followed as it stands: a third is "0.334".
func (f Fraction) String() string {
	if f.Zero() {
		return "0"
	}
	text, _ := f.MarshalText() // no error: it prints numbers
	return strings.TrimSuffix(strings.TrimRight(string(text), "0"), ".")
}

var (
	decimalText = regexp.MustCompile(`^(0|1|0?\.[0-9]{1,6}|1\.0{1,6})$`)
	ratioText   = regexp.MustCompile(`^[1-9][0-9]{0,2}/[1-9][0-9]{0,2}$`)
	percentText = regexp.MustCompile(`^[0-9]{1,3}(\.[0-9]{1,3})?pct$`)
)

// ParseFraction reads "0.25", "25pct" or "1/4": more than 0, at most 1, ASCII digits, at most six decimals.
// The API server rounds quantities up to thousandths, so k thousandths with k = ceil(1000/n) mean 1/n: "0.334" is a
// third, and n such slices fit n replicas.
func ParseFraction(text string) (Fraction, error) {
	const accepted = `accepted: more than 0 and at most 1, such as "0.25" or "25pct"`
	var micros int64
	switch {
	case len(text) > MaxText:
		return Fraction{}, fmt.Errorf("%s is longer than %d characters; %s", message.Quote(text), MaxText, accepted)
	case percentText.MatchString(text):
		micros = decimalMicros(strings.TrimSuffix(text, "pct")) / 100
	case ratioText.MatchString(text):
		num, den, _ := strings.Cut(text, "/")
		micros = ratioMicros(num, den)
	case decimalText.MatchString(text):
		micros = decimalMicros(text)
	default:
		return Fraction{}, fmt.Errorf("%q is not a fraction; %s", text, accepted)
	}
	if micros <= 0 || micros > Micro {
		return Fraction{}, fmt.Errorf("%q is out of range; %s", text, accepted)
	}
	return reduceFraction(micros), nil
}

// ratioMicros reads a quotient as millionths, an n-th rounded up to thousandths as Kubernetes does.
func ratioMicros(num, den string) int64 {
	n, _ := strconv.ParseInt(num, 10, 64)
	d, _ := strconv.ParseInt(den, 10, 64)
	unit := int64(1)
	if n == 1 {
		unit = Micro / 1000
	}
	return (n*Micro + d*unit - 1) / (d * unit) * unit
}

// decimalMicros reads an unsigned decimal of at most six decimals as millionths.
func decimalMicros(text string) int64 {
	whole, frac, _ := strings.Cut(text, ".")
	w, _ := strconv.ParseInt("0"+whole, 10, 64)
	f, _ := strconv.ParseInt((frac + "000000")[:6], 10, 64)
	return w*Micro + f
}

// MaxFractions is the largest number of replicas for which the rounding is undone: the most that MPS can serve.
const MaxFractions = 48

// reduceFraction undoes the rounding to thousandths: k = ceil(1000/n) thousandths become 1/n. Above 31 several n share
// one k: a 36th and a 37th both become 28 thousandths. They mean the largest such n, whose slice fits either device.
func reduceFraction(micros int64) Fraction {
	milli := micros / 1000
	if micros%1000 != 0 || milli < 1 || milli > 999 {
		return Fraction{micros, Micro}
	}
	smallest := (1000 + milli - 1) / milli
	if (1000+smallest-1)/smallest != milli {
		return Fraction{micros, Micro} // no device has such a share: 0.4
	}
	n := smallest
	for n < MaxFractions && (1000+n)/(n+1) == milli {
		n++
	}
	return Fraction{1, n}
}

// UnmarshalText reads f as ParseFraction does.
func (f *Fraction) UnmarshalText(text []byte) error {
	v, err := ParseFraction(string(text))
	*f = v
	return err
}

// MarshalText prints f so that UnmarshalText reads the same Fraction back.
func (f Fraction) MarshalText() ([]byte, error) {
	if f.Zero() {
		return []byte("0"), nil
	}
	if f.Num == 1 && f.Den <= 1000 { // ceil(1000/n) thousandths read back as 1/n
		return []byte(strconv.FormatFloat(float64((1000+f.Den-1)/f.Den)/1000, 'f', 3, 64)), nil
	}
	return []byte(strconv.FormatFloat(float64(f.Num)/float64(f.Den), 'f', 6, 64)), nil
}
