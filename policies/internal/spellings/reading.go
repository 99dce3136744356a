package spellings

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/message"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// reading reads the value of one name.
type reading func(v value, into *collected) error

// sized reads a resource whose name ends in a size, named an annotation whose name ends in a container's and a field.
type (
	sized func(rest string, v value, into *collected) error
	named func(rest string) (container string, read reading, ok bool)
)

// value is the value of a name.
type value struct {
	text     string
	quantity *resource.Quantity // of a resource
}

// collected gathers the values of one system's names, before they become one request.
type collected struct {
	Part
	percent, cores int64        // hundredths of a device's memory and of its compute
	request, limit string       // fractions of compute
	unread         []string     // names that have no form here
	unit           quantity.MiB // of numbers without a unit, in the place of the system's own; 0: its own
}

// once sets a field that another name may have set to the same, if it could be read.
func once[T comparable](field *T, to T, err error) error {
	var unset T
	if err == nil && *field != unset && *field != to {
		err = fmt.Errorf("it says %v, and another name %v; write one of them", to, *field)
	}
	*field = to
	return err
}

// whole is a value as a whole number from 1 to most.
func (v value) whole(unit string, most int64) (int64, error) {
	accepted := fmt.Sprintf("a whole number of %s from 1 to %d", unit, most)
	if most == 1 {
		accepted = "1"
	}
	wrong := fmt.Errorf("%s is not understood; accepted: %s", message.Quote(v.text), accepted)
	q := v.quantity
	if q == nil {
		if len(v.text) > quantity.MaxText || !quantity.Cheap.MatchString(v.text) {
			return 0, wrong
		}
		parsed, err := resource.ParseQuantity(v.text)
		if err != nil {
			return 0, wrong
		}
		q = &parsed
	}
	if q.Sign() <= 0 || q.CmpInt64(most) > 0 || q.CmpInt64(q.Value()) != 0 {
		return 0, wrong
	}
	return q.Value(), nil
}

// mebibytes reads a number of so many MiB.
func mebibytes(own int64) reading {
	return func(v value, into *collected) error {
		each, unit := cmp.Or(int64(into.unit), own), "MiB"
		if each > 1 {
			unit = "times " + quantity.MiB(each).String()
		}
		n, err := v.whole(unit, int64(quantity.MaxMemory)/each)
		return once(&into.Size.Memory, quantity.MiB(n*each), err)
	}
}

// bytes reads an amount with or without a unit.
func bytes(v value, into *collected) error {
	amount, err := v.amount()
	return once(&into.Size.Memory, amount, err)
}

// limitBytes and limitMebibytes read how much may be reached while the device has room.
func limitBytes(v value, into *collected) error {
	amount, err := v.amount()
	return once(&into.Size.MemoryLimit, amount, err)
}

func limitMebibytes(v value, into *collected) error {
	n, err := v.whole("MiB", int64(quantity.MaxMemory))
	return once(&into.Size.MemoryLimit, quantity.MiB(n), err)
}

func (v value) amount() (quantity.MiB, error) {
	if v.quantity == nil {
		return quantity.ParseMemory(v.text)
	}
	n := v.quantity.Value() / quantity.Mebibyte
	if v.quantity.Sign() <= 0 || v.quantity.CmpInt64(quantity.MaxMemory.Bytes()) > 0 || n < 1 {
		return 0, fmt.Errorf("%s is not understood; accepted: an amount from 1Mi to 1Pi", message.Quote(v.text))
	}
	return quantity.MiB(n), nil
}

// fraction reads a share of the device's memory.
func fraction(v value, into *collected) error {
	share, err := quantity.ParseFraction(v.text)
	return once(&into.Size.Fraction, share, err)
}

// percent reads hundredths of a device's memory, cores of its compute.
func percent(most int64) reading {
	return func(v value, into *collected) error {
		n, err := v.whole("hundredths", most)
		return once(&into.percent, n, err)
	}
}

func cores(most int64) reading {
	return func(v value, into *collected) error {
		n, err := v.whole("hundredths", most)
		return once(&into.cores, n, err)
	}
}

// devices reads how many devices are requested.
func devices(v value, into *collected) error {
	n, err := v.whole("GPUs", quantity.MaxGPUs)
	return once(&into.GPUs, n, err)
}

// strategy reads a word for a strategy.
func strategy(accepted string, words map[string]api.StrategyName) reading {
	return func(v value, into *collected) error {
		if into.Strategy = words[v.text]; into.Strategy == "" {
			return fmt.Errorf("%s is not understood; accepted: %s", message.Quote(v.text), accepted)
		}
		return nil
	}
}

// unread takes note of a name that has no form here.
func unread(name string) reading {
	return func(_ value, into *collected) error {
		into.unread = append(into.unread, name)
		return nil
	}
}

// unreadNames adds names that have no form here.
func unreadNames(to map[string]reading, names ...string) map[string]reading {
	for _, name := range names {
		to[name] = unread(name)
	}
	return to
}

// oneDevice is the most of hundredths that are of each device, allDevices of those that are of all together.
const (
	oneDevice  = 100
	allDevices = 100 * quantity.MaxGPUs
)

// settle makes one request of the collected values.
func (c *collected) settle(complete func(*collected) error) error {
	if complete != nil {
		if err := complete(c); err != nil {
			return err
		}
	}
	if c.percent > 0 && (c.Size.Memory != 0 || !c.Size.Fraction.Zero()) || c.Size.Memory != 0 && !c.Size.Fraction.Zero() {
		return errors.New("an amount and a share each say how large the slice is; write one of them")
	}
	if c.percent > 0 {
		c.Size.Fraction, _ = quantity.ParseFraction(strconv.FormatInt(c.percent, 10) + "pct") // 1 to 100
	}
	c.Size.Compute = int(c.cores)
	if c.Size.MemoryLimit != 0 && c.Size.MemoryLimit < c.Size.Memory {
		return fmt.Errorf("the limit %s is less than the request %s", c.Size.MemoryLimit, c.Size.Memory)
	}
	return nil
}

// divide divides totals of all devices among them.
func (c *collected) divide() error {
	if n := max(c.percent, c.cores); c.GPUs == 0 && n > oneDevice && n%oneDevice == 0 {
		c.GPUs = n / oneDevice
	}
	n := max(c.GPUs, 1)
	if int64(c.Size.Memory)%n != 0 || c.percent%n != 0 || c.cores%n != 0 {
		return fmt.Errorf("it is for %d GPUs together, and does not divide by %d", n, n)
	}
	c.Size.Memory /= quantity.MiB(n)
	c.percent, c.cores = c.percent/n, c.cores/n
	if c.percent > oneDevice || c.cores > oneDevice {
		return fmt.Errorf("%d hundredths are neither a part of a GPU nor whole GPUs", max(c.percent, c.cores))
	}
	return nil
}
