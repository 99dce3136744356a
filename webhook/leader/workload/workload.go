package workload

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

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
