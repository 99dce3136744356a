package frameworks

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
)

const mebibyte = 1 << 20

// Fixed amounts of the formulas, in bytes and MiB: vLLM counts its context inside its budget, and a quarter GiB stays
// free for memory that it does not count; llama.cpp by default leaves 1024 MiB free on a device.
const (
	utilizationSpare = 256 * mebibyte
	fitDefaultMiB    = 1024
)

// amounts are the inputs of formulas, in bytes per GPU.
type amounts struct {
	limit      int64 // of the container
	perProcess int64 // the limit divided by the processes on the GPU
	budget     int64 // of the framework's allocator in one process: perProcess less the context allowance
	total      int64 // of the device; 0 when not known
	allowance  int64
	view       View
}

func amountsOf(in *Input) amounts {
	limit := max(in.LimitBytes, in.SliceBytes)
	perProcess := limit / int64(max(in.Processes, 1))
	allowance := max(in.AllowanceBytes, 0)
	return amounts{limit: limit, perProcess: perProcess, budget: perProcess - allowance,
		total: max(in.TotalBytes, 0), allowance: allowance, view: in.View}
}

// formulas is the closed set that profiles may name. Each returns text, or the reason why there is none, for people.
var formulas = map[string]func(amounts) (string, error){
	"fraction":          fraction,
	"bytes":             bytes,
	"mebibytes":         mebibytes,
	"headroomBytes":     headroomBytes,
	"headroomMebibytes": headroomMebibytes,
	"fitMebibytes":      fitMebibytes,
	"wiggle":            wiggle,
	"utilization":       utilization,
	"staticFraction":    staticFraction,
	allocFormula:        func(amounts) (string, error) { return "", nil }, // replaced in every evaluation
}

// allocFormula stands for the settings text of the profile or the policy, which depends on no amount.
const allocFormula = "allocConf"

// Why a formula has no answer.
var (
	errNoTotal = errors.New("the device's memory is not known here")
	errSliced  = errors.New("the process sees its slice as the whole device")
	errView    = errors.New("the total may already be the driver's limit here")
	errWhole   = errors.New("the slice is as large as the device")
	errFree    = errors.New("free memory already ends at the slice")
)

// budgetBytes returns the allocator's budget of one process, which is above zero.
func (a amounts) budgetBytes() (int64, error) {
	if a.budget <= 0 {
		return 0, fmt.Errorf("%s a process is not more than the context allowance of %s", size(a.perProcess), size(a.allowance))
	}
	return a.budget, nil
}

// below is the reason why a part of the total would be wrong: the total is not the device's, not known, or not more
// than the part.
func (a amounts) below(part int64) error {
	switch {
	case a.view == ViewSliced:
		return errSliced
	case a.view != ViewWhole && a.view != ViewLimitedFree:
		return errView
	case a.total == 0:
		return errNoTotal
	case part >= a.total:
		return errWhole
	}
	return nil
}

// ofTotal returns part/total in units of 1/scale, rounded down, which is above zero.
func (a amounts) ofTotal(part, scale int64) (int64, error) {
	if err := a.below(part); err != nil {
		return 0, err
	}
	high, low := bits.Mul64(uint64(max(part, 0)), uint64(scale))
	q, _ := bits.Div64(high, low, uint64(a.total))
	if q == 0 {
		return 0, fmt.Errorf("%s is too small a part of %s", size(max(part, 0)), size(a.total))
	}
	return int64(q), nil
}

// beyond returns the device's memory beyond one process's share, if free memory is the device's own.
func (a amounts) beyond() (int64, error) {
	if a.view == ViewLimitedFree {
		return 0, errFree
	}
	// A margin that leaves less than the context takes exceeds the free memory, and frameworks ignore such a margin.
	if _, err := a.budgetBytes(); err != nil {
		return 0, err
	}
	return a.total - a.perProcess, a.below(a.perProcess)
}

// fraction is the budget as a share of the total, rounded down at six decimals: at most 0.14 MiB of a 140 GiB device are lost.
func fraction(a amounts) (string, error) {
	budget, err := a.budgetBytes()
	if err != nil {
		return "", err
	}
	micro, err := a.ofTotal(budget, 1e6)
	return fmt.Sprintf("0.%06d", micro), err
}

// bytes is the budget in bytes.
func bytes(a amounts) (string, error) {
	budget, err := a.budgetBytes()
	return strconv.FormatInt(budget, 10), err
}

// mebibytes is the budget in MiB, rounded down.
func mebibytes(a amounts) (string, error) {
	budget, err := a.budgetBytes()
	if err == nil && budget < mebibyte {
		err = errors.New("less than 1Mi is left for the framework")
	}
	return strconv.FormatInt(budget/mebibyte, 10), err
}

// headroomBytes is the memory of the device that must stay free, in bytes.
func headroomBytes(a amounts) (string, error) {
	beyond, err := a.beyond()
	return strconv.FormatInt(beyond, 10), err
}

// headroomMebibytes is the memory of the device that must stay free, in MiB, rounded up.
func headroomMebibytes(a amounts) (string, error) {
	beyond, err := a.beyond()
	return strconv.FormatInt((beyond+mebibyte-1)/mebibyte, 10), err
}

// fitMebibytes is llama.cpp's margin on a device: the headroom and the margin it would leave anyway.
func fitMebibytes(a amounts) (string, error) {
	beyond, err := a.beyond()
	return strconv.FormatInt((beyond+mebibyte-1)/mebibyte+fitDefaultMiB, 10), err
}

// wiggle makes TGI subtract a tenth of the slice from free memory, where it would subtract a tenth of the device; rounded down.
func wiggle(a amounts) (string, error) {
	micro, err := a.ofTotal(a.perProcess, 1e5)
	return fmt.Sprintf("0.%06d", 1e6-1-micro), err
}

// utilization is vLLM's share of the total, rounded down at four decimals; its context counts inside.
func utilization(a amounts) (string, error) {
	if a.perProcess <= utilizationSpare {
		return "", fmt.Errorf("%s is too small", size(a.perProcess))
	}
	share, err := a.ofTotal(a.perProcess-utilizationSpare, 1e4)
	return fmt.Sprintf("0.%04d", share), err
}

// staticFraction is SGLang's share of the free memory at its start, which is never more than the total.
func staticFraction(a amounts) (string, error) {
	budget, err := a.budgetBytes()
	if err != nil {
		return "", err
	}
	share, err := a.ofTotal(budget, 1e4)
	return fmt.Sprintf("0.%04d", share), err
}

// size writes bytes for people, in GiB or MiB, rounded down at one decimal.
func size(bytes int64) string {
	unit, name := int64(mebibyte), "Mi"
	if bytes >= 1<<30 {
		unit, name = 1<<30, "Gi"
	}
	whole, tenths := bytes/unit, bytes%unit*10/unit
	if tenths == 0 {
		return strconv.FormatInt(whole, 10) + name
	}
	return fmt.Sprintf("%d.%d%s", whole, tenths, name)
}
