package quantity

import (
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/gpuslice/gpuslice/policies/internal/message"
)

// Devices is an amount of GPU equivalents: whole devices and shares of one, in units of 1/Device. Sums are exact.
type Devices int64

// Device is one whole device. Every share 1/n for n up to 16, and most up to 48, is a whole number of units: 2^7 x 3^2 x 5^2 x
// 7 x 11 x 13. Other shares are rounded down, so that n of them always fit a device.
const Device Devices = 28_828_800

// ShareOf is num/den of a device, rounded down, and the whole device where that is not known or would be more.
func ShareOf(num, den int64) Devices {
	if num <= 0 || den <= 0 || num >= den {
		return Device
	}
	return max(Devices(num*int64(Device)/den), 1)
}

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

// MarshalText prints d so that UnmarshalText reads the same amount: "0.25", "1/3".
func (d Devices) MarshalText() ([]byte, error) {
	text, same := []byte(d.String()), Devices(0)
	if err := same.UnmarshalText(text); err == nil && same == d {
		return text, nil
	}
	reduced := big.NewRat(int64(d), int64(Device))
	return strconv.AppendInt(append(reduced.Num().Append(nil, 10), '/'), reduced.Denom().Int64(), 10), nil
}
