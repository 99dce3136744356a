package policies

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
)

const profileMiB = 1 << 20

// Fixed amounts of the formulas, in bytes and MiB: vLLM counts its context inside its budget, and a quarter GiB stays free for what
// it does not count; llama.cpp leaves 1024 MiB free on a device unless told otherwise.
const (
	profileUtilizationSpare = 256 * profileMiB
	profileFitDefaultMiB    = 1024
)

// profileAmounts is what formulas compute with, in bytes per GPU.
type profileAmounts struct {
	limit     int64 // of the container
	share     int64 // of one process: the limit divided by the processes on the GPU
	budget    int64 // of the framework's allocator in one process: share less the context allowance
	total     int64 // of the device; 0 when not known
	allowance int64
	view      ProfileView
}

func profileAmountsOf(in *ProfileInput) profileAmounts {
	limit := max(in.LimitBytes, in.SliceBytes)
	share := limit / int64(max(in.Processes, 1))
	allowance := max(in.AllowanceBytes, 0)
	return profileAmounts{limit: limit, share: share, budget: share - allowance, total: max(in.TotalBytes, 0), allowance: allowance, view: in.View}
}

// profileFormulas is the closed set that profiles may name. Each returns text, or the reason why there is none, for people.
var profileFormulas = map[string]func(profileAmounts) (string, error){
	"fraction":          profileFraction,
	"bytes":             profileBytes,
	"mebibytes":         profileMebibytes,
	"headroomBytes":     profileHeadroomBytes,
	"headroomMebibytes": profileHeadroomMebibytes,
	"fitMebibytes":      profileFitMebibytes,
	"wiggle":            profileWiggle,
	"utilization":       profileUtilization,
	"staticFraction":    profileStaticFraction,
	profileAllocFormula: func(profileAmounts) (string, error) { return "", nil }, // replaced in every evaluation
}

// profileAllocFormula stands for the settings text of the profile or the policy, which depends on no amount.
const profileAllocFormula = "allocConf"

// Why a formula has no answer.
var (
	errProfileNoTotal = errors.New("the device's memory is not known here")
	errProfileSliced  = errors.New("the process sees its slice as the whole device")
	errProfileView    = errors.New("the total may already be the driver's limit here")
	errProfileWhole   = errors.New("the slice is as large as the device")
	errProfileFree    = errors.New("free memory already ends at the slice")
)

// budgetBytes returns the allocator's budget of one process, which is above zero.
func (a profileAmounts) budgetBytes() (int64, error) {
	if a.budget <= 0 {
		return 0, fmt.Errorf("%s a process is not more than the context allowance of %s", profileSize(a.share), profileSize(a.allowance))
	}
	return a.budget, nil
}

// below says why a part of the total would not mean what it says: the total is not the device's, not known, or not more than the part.
func (a profileAmounts) below(part int64) error {
	switch {
	case a.view == ProfileViewSliced:
		return errProfileSliced
	case a.view != ProfileViewWhole && a.view != ProfileViewLimitedFree:
		return errProfileView
	case a.total == 0:
		return errProfileNoTotal
	case part >= a.total:
		return errProfileWhole
	}
	return nil
}

// ofTotal returns part/total in units of 1/scale, rounded down, which is above zero.
func (a profileAmounts) ofTotal(part, scale int64) (int64, error) {
	if err := a.below(part); err != nil {
		return 0, err
	}
	high, low := bits.Mul64(uint64(max(part, 0)), uint64(scale))
	q, _ := bits.Div64(high, low, uint64(a.total))
	if q == 0 {
		return 0, fmt.Errorf("%s is too small a part of %s", profileSize(max(part, 0)), profileSize(a.total))
	}
	return int64(q), nil
}

// beyond returns what the device has beyond one process's share, where free memory is the device's own.
func (a profileAmounts) beyond() (int64, error) {
	if a.view == ProfileViewLimitedFree {
		return 0, errProfileFree
	}
	// A margin that leaves less than the context takes is more than what is free, and frameworks ignore such a margin.
	if _, err := a.budgetBytes(); err != nil {
		return 0, err
	}
	return a.total - a.share, a.below(a.share)
}

// profileFraction is the budget as a share of the total, rounded down at six decimals: at most 0.14 MiB of a 140 GiB device are lost.
func profileFraction(a profileAmounts) (string, error) {
	budget, err := a.budgetBytes()
	if err != nil {
		return "", err
	}
	micro, err := a.ofTotal(budget, 1e6)
	return fmt.Sprintf("0.%06d", micro), err
}

// profileBytes is the budget in bytes.
func profileBytes(a profileAmounts) (string, error) {
	budget, err := a.budgetBytes()
	return strconv.FormatInt(budget, 10), err
}

// profileMebibytes is the budget in MiB, rounded down.
func profileMebibytes(a profileAmounts) (string, error) {
	budget, err := a.budgetBytes()
	if err == nil && budget < profileMiB {
		err = errors.New("less than 1Mi is left for the framework")
	}
	return strconv.FormatInt(budget/profileMiB, 10), err
}

// profileHeadroomBytes is what must stay free of the device, in bytes.
func profileHeadroomBytes(a profileAmounts) (string, error) {
	beyond, err := a.beyond()
	return strconv.FormatInt(beyond, 10), err
}

// profileHeadroomMebibytes is what must stay free of the device, in MiB, rounded up.
func profileHeadroomMebibytes(a profileAmounts) (string, error) {
	beyond, err := a.beyond()
	return strconv.FormatInt((beyond+profileMiB-1)/profileMiB, 10), err
}

// profileFitMebibytes is llama.cpp's margin on a device: the headroom and the margin it would leave anyway.
func profileFitMebibytes(a profileAmounts) (string, error) {
	beyond, err := a.beyond()
	return strconv.FormatInt((beyond+profileMiB-1)/profileMiB+profileFitDefaultMiB, 10), err
}

// profileWiggle makes TGI subtract a tenth of the slice from free memory, where it would subtract a tenth of the device; rounded down.
func profileWiggle(a profileAmounts) (string, error) {
	micro, err := a.ofTotal(a.share, 1e5)
	return fmt.Sprintf("0.%06d", 1e6-1-micro), err
}

// profileUtilization is vLLM's share of the total, rounded down at four decimals; its context counts inside.
func profileUtilization(a profileAmounts) (string, error) {
	if a.share <= profileUtilizationSpare {
		return "", fmt.Errorf("%s is too small", profileSize(a.share))
	}
	share, err := a.ofTotal(a.share-profileUtilizationSpare, 1e4)
	return fmt.Sprintf("0.%04d", share), err
}

// profileStaticFraction is SGLang's share of what is free at its start, which is never more than the total.
func profileStaticFraction(a profileAmounts) (string, error) {
	budget, err := a.budgetBytes()
	if err != nil {
		return "", err
	}
	share, err := a.ofTotal(budget, 1e4)
	return fmt.Sprintf("0.%04d", share), err
}

// profileSize writes bytes for people, in GiB or MiB, rounded down at one decimal.
func profileSize(bytes int64) string {
	unit, name := int64(profileMiB), "Mi"
	if bytes >= 1<<30 {
		unit, name = 1<<30, "Gi"
	}
	whole, tenths := bytes/unit, bytes%unit*10/unit
	if tenths == 0 {
		return strconv.FormatInt(whole, 10) + name
	}
	return fmt.Sprintf("%d.%d%s", whole, tenths, name)
}
