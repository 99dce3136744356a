package foreign

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/internal/quantity"
)

// System is another system that shares GPUs, and the words in which its users write requests. Each reading says what to write
// instead of a value; "" where the value cannot be read.
type System struct {
	Name string
	// Resources are resources of containers.
	Resources map[string]func(resource.Quantity) string
	// Words are annotations and labels of pods.
	Words map[string]func(text string) string
}

const (
	mebibyte  = 1 << 20
	maxAmount = 1 << 30 // MiB; no device has a pebibyte
	maxText   = 16      // a longer quantity can be costly to read
)

// memory reads a number of so many MiB, as a label.
func memory(name string, each int64) func(resource.Quantity) string {
	return func(q resource.Quantity) string {
		n := q.Value()
		if n <= 0 || n > maxAmount/each {
			return ""
		}
		return label(name, strconv.FormatInt(n*each, 10)+"Mi")
	}
}

// amount reads a quantity of bytes, as a label.
func amount(name string) func(resource.Quantity) string {
	return func(q resource.Quantity) string {
		n := q.Value() / mebibyte
		if n <= 0 || n > maxAmount {
			return ""
		}
		return label(name, strconv.FormatInt(n, 10)+"Mi")
	}
}

// percent reads a share of the device's memory, and cores one of its multiprocessors.
func percent(q resource.Quantity) string { return hundredths(q, api.LabelFraction, "pct") }
func cores(q resource.Quantity) string   { return hundredths(q, api.LabelCompute, "") }

func hundredths(q resource.Quantity, name, unit string) string {
	if n := q.Value(); n > 0 && n <= 100 {
		return label(name, strconv.FormatInt(n, 10)+unit)
	}
	return ""
}

// devices reads how many devices are wanted.
func devices(q resource.Quantity) string {
	if n := q.Value(); n > 0 && n <= maxAmount {
		return fmt.Sprintf("%s: %d", api.ResourceGPU, n)
	}
	return ""
}

// written reads a quantity that stands in an annotation or label.
func written(read func(resource.Quantity) string) func(string) string {
	return func(text string) string {
		if len(text) > maxText {
			return ""
		}
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return ""
		}
		return read(q)
	}
}

// fraction reads a fraction that is written as ours is.
func fraction(text string) string {
	if _, err := quantity.ParseFraction(text); err != nil {
		return ""
	}
	return label(api.LabelFraction, text)
}

func label(name, value string) string { return fmt.Sprintf("the label %s: %q", name, value) }
