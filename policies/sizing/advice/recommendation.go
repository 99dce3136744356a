package advice

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	return cmp.Or(cmp.Compare(c.Namespace, o.Namespace), cmp.Compare(c.Kind, o.Kind),
		cmp.Compare(c.Name, o.Name), cmp.Compare(c.Container, o.Container))
}

// InTurn sorts what is of containers, in the order that it has: no namespace has a further one before each other has as many.
func InTurn[T any](all []T, of func(T) Container) {
	turn, before := make(map[Container]int, len(all)), map[string]int{}
	for i := range all {
		c := of(all[i])
		turn[c] = before[c.Namespace]
		before[c.Namespace]++
	}
	slices.SortStableFunc(all, func(a, b T) int { return cmp.Compare(turn[of(a)], turn[of(b)]) })
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

// Owner makes the pods of a workload: "Deployment", "web". The zero Owner is none that can be named.
type Owner struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// scheduled is how a CronJob names its Jobs: by the minute since the epoch.
var scheduled = regexp.MustCompile(`^(.+)-[0-9]{8,11}$`)

// OwnerOf returns the owner of a pod from the pod alone: its controller, the Deployment of a ReplicaSet, the CronJob of a Job. A
// pod without a controller is its own owner, under the name that it was generated from. Nothing proves the answer: the pod's author
// writes it.
func OwnerOf(pod metav1.Object) Owner {
	o := Owner{"Pod", pod.GetName()}
	if base := strings.TrimRight(pod.GetGenerateName(), "-"); base != "" {
		o.Name = base
	}
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		o = Owner{ref.Kind, ref.Name}
		hash := pod.GetLabels()[appsv1.DefaultDeploymentUniqueLabelKey]
		if deployment, ok := strings.CutSuffix(ref.Name, "-"+hash); ok && hash != "" && ref.Kind == "ReplicaSet" {
			o = Owner{"Deployment", deployment}
		} else if m := scheduled.FindStringSubmatch(ref.Name); m != nil && ref.Kind == "Job" {
			o = Owner{"CronJob", m[1]}
		}
	}
	if !o.valid() {
		return Owner{}
	}
	return o
}

// valid reports whether an object can have that kind and name. The API server checks neither in a reference.
func (o Owner) valid() bool {
	return len(o.Kind) <= validation.DNS1035LabelMaxLength && len(validation.IsDNS1035Label(strings.ToLower(o.Kind))) == 0 &&
		len(o.Name) <= validation.DNS1123SubdomainMaxLength && len(validation.IsDNS1123Subdomain(o.Name)) == 0
}

// String is the owner for people: "Deployment web".
func (o Owner) String() string {
	if o == (Owner{}) {
		return "a workload without a name"
	}
	return o.Kind + " " + o.Name
}
