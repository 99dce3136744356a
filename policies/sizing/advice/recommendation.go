package advice

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/sizing"
)

// Coverages are those for which there are sizes, in percent.
var Coverages = [...]int{90, 95, 99}

// DefaultCoverage is that of verdicts.
const DefaultCoverage = 95

// Container names a container of a workload.
type Container struct {
	Namespace string `json:"namespace"`
	Owner
	Container string `json:"container"`
}

// Compare orders containers by name.
func (c Container) Compare(o Container) int {
	return cmp.Or(cmp.Compare(c.Namespace, o.Namespace), cmp.Compare(c.Kind, o.Kind), cmp.Compare(c.Name, o.Name), cmp.Compare(c.Container, o.Container))
}

// InTurn sorts what is of containers, in the order that it has: no namespace has a further one before each other has as many.
func InTurn[T any](all []T, of func(*T) Container) {
	turn, before := make(map[Container]int, len(all)), map[string]int{}
	for i := range all {
		c := of(&all[i])
		turn[c] = before[c.Namespace]
		before[c.Namespace]++
	}
	slices.SortStableFunc(all, func(a, b T) int { return cmp.Compare(turn[of(&a)], turn[of(&b)]) })
}

// Recommendation is the recommendation for a Container.
type Recommendation struct {
	Container
	// Sizes are in MiB, one for each of Coverages; 0: none is given.
	Sizes [len(Coverages)]api.MiB
	// Verdict is that of DefaultCoverage, and Since when it was first reached without another one in between.
	Verdict sizing.Verdict
	Since   time.Time
	Hours   float64 // of history
	Slice   api.MiB // that its containers have now; 0: none, or unknown
}

// maxMiB is more than any GPU has: 16 TiB.
const maxMiB = 1 << 24

// maxHours is more than any history has.
const maxHours = 24 * 1000

// check returns why no recommendation is like that.
func (r *Recommendation) check() error {
	switch {
	case len(r.Namespace) > validation.DNS1123LabelMaxLength || len(validation.IsDNS1123Label(r.Namespace)) > 0:
		return fmt.Errorf("the namespace %.70q cannot be", r.Namespace)
	case !r.valid():
		return fmt.Errorf("the owner %.70q %.260q cannot be", r.Kind, r.Name)
	case len(r.Container.Container) > validation.DNS1123LabelMaxLength || len(validation.IsDNS1123Label(r.Container.Container)) > 0:
		return fmt.Errorf("the container %.70q cannot be", r.Container.Container)
	case !slices.Contains(verdicts, r.Verdict):
		return fmt.Errorf("the verdict %.30q is unknown", r.Verdict)
	case !(r.Hours >= 0 && r.Hours <= maxHours):
		return fmt.Errorf("%g hours of history", r.Hours)
	}
	for _, size := range append(r.Sizes[:], r.Slice) {
		if size < 0 || size > maxMiB {
			return fmt.Errorf("%d MiB are no memory of a GPU", int64(size))
		}
	}
	return nil
}

var verdicts = []sizing.Verdict{sizing.OverRequested, sizing.Right, sizing.AtRisk, sizing.NoSlice,
	sizing.NotEnoughHistory, sizing.TakesWhatIsGiven, sizing.Idle, sizing.Unknown}

// Size is the size at a coverage of Coverages, and why there is none where it is 0.
func (r *Recommendation) Size(coverage int) (size api.MiB, why string) {
	switch r.Verdict {
	case sizing.NotEnoughHistory:
		return 0, "not enough history"
	case sizing.TakesWhatIsGiven:
		return 0, "it takes what it is given"
	case sizing.Idle:
		return 0, "its history is idle"
	case sizing.Unknown:
		return 0, "its need is unknown"
	}
	if i := slices.Index(Coverages[:], coverage); i >= 0 {
		size = r.Sizes[i]
	}
	if size == 0 {
		return 0, fmt.Sprintf("its history gives no size at %d%%", coverage)
	}
	return size, ""
}
