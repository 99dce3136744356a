package quantity

import (
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"github.com/gpuslice/gpuslice/policies/internal/message"
)

// Devices is an amount of GPU equivalents: whole devices and shares of one, in units of 1/Device. Sums are exact.
type Devices int64

// Device is one whole device. Every share 1/n for n up to 16, and most up to 48, is a whole number of units: 2^7 x 3^2 x 5^2 x
// 7 x 11 x 13. Other shares are rounded down, so that n of them always fit a device.
const Device Devices = 28_828_800

// Times is n times d, at most MaxCharge.
func (d Devices) Times(n int64) Devices { return Devices(Product(int64(d), n)) }

const thousand = 1000

// String prints d for people, rounded up to thousandths: "2", "0.25", "0.334".
func (d Devices) String() string {
	milli := (int64(d)*thousand + int64(Device) - 1) / int64(Device)
	text := fmt.Sprintf("%d.%03d", milli/thousand, milli%thousand)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// Float is d as a plain number, for output alone.
func (d Devices) Float() float64 { return float64(d) / float64(Device) }

var devicesText = regexp.MustCompile(`^([0-9]{1,6}(\.[0-9]{1,3})?|[0-9]{1,13}/[1-9][0-9]{0,7})$`)

// UnmarshalText reads an amount of devices such as "2", "0.25" or "1/3", rounded down to units.
func (d *Devices) UnmarshalText(text []byte) error {
	const accepted = `accepted: a number such as "2", "0.25" or "1/3"`
	if !devicesText.Match(text) {
		return fmt.Errorf("%s is not an amount of devices; %s", message.Quote(string(text)), accepted)
	}
	exact, _ := new(big.Rat).SetString(string(text)) // the pattern leaves nothing that it cannot read
	exact.Mul(exact, new(big.Rat).SetInt64(int64(Device)))
	units := new(big.Int).Quo(exact.Num(), exact.Denom())
	if units.Cmp(big.NewInt(MaxCharge)) > 0 {
		return fmt.Errorf("%s is more than %d; %s", text, MaxCharge/Device, accepted)
	}
	*d = Devices(units.Int64())
	return nil
}

// MarshalText prints d so that UnmarshalText reads the same amount: "2", "1/4".
func (d Devices) MarshalText() ([]byte, error) {
	return []byte(big.NewRat(int64(d), int64(Device)).RatString()), nil
}
