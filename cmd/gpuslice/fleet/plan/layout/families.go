package layout

import (
	"cmp"
	"slices"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/plan/demand"
	"github.com/gpuslice/gpuslice/policies/api"
)

// The strategies of forms, as gpuslice names them.
const (
	Exclusive   api.StrategyName = "exclusive"
	TimeSlicing api.StrategyName = "time-slicing"
	MPS         api.StrategyName = "mps"
	MIG         api.StrategyName = "mig"
	Claim       api.StrategyName = "claim"
)

// MaxReplicas is the largest number of replicas of a device that is proposed.
const MaxReplicas = 16

// Families are the forms that a plan may give devices, beside whole ones.
type Families struct {
	Replicas []int            // numbers of equal replicas, each from 2
	Shared   api.StrategyName // of the replicas: TimeSlicing or MPS
	MIG      bool             // instances, on models that Geometry has
	Claims   bool             // exact parts, by dynamic resource allocation
	Reserve  int64            // thousandths of a shared device's memory that no slice has
	// Geometry is nil for models without MIG.
	Geometry func(*demand.Kind) *Geometry
}

// Whole are families without any, with the reserve of policies and the geometries that are known.
func Whole() Families {
	const reserve = 30 // the default, 3 per cent
	return Families{Reserve: reserve, Geometry: geometryOf}
}

// Default are time-slicing, or MPS where nodes have that instead, and MIG and claims where nodes have them.
func Default(f *demand.Fleet) Families {
	has := map[api.StrategyName]bool{}
	for _, kind := range f.Used() {
		has[f.Kinds[kind].Strategy] = true
	}
	fam := Whole()
	fam.Shared, fam.Replicas, fam.MIG, fam.Claims = TimeSlicing, AllReplicas(), has[MIG], has[Claim]
	if has[MPS] && !has[TimeSlicing] {
		fam.Shared = MPS
	}
	return fam
}

// Only has shared devices have so many replicas; 1: devices are not shared.
func (fam *Families) Only(replicas int) {
	fam.Shared, fam.Replicas = cmp.Or(fam.Shared, TimeSlicing), nil
	if replicas > 1 {
		fam.Replicas = []int{replicas}
	}
}

// AllReplicas are 2 to MaxReplicas.
func AllReplicas() (all []int) {
	for r := 2; r <= MaxReplicas; r++ {
		all = append(all, r)
	}
	return all
}

// part is how a pod can have a part of a device of a kind. Weight is the part that nobody else can have: with others that have theirs
// of a device, at most 1.
type part struct {
	kind     int
	strategy api.StrategyName
	replicas int
	profile  int
	share    int
	weight   float64
	geometry *Geometry
}

// parts are all ways for a pod to have a part, one for each of the kinds and each family.
func (fam *Families) parts(f *demand.Fleet, p *demand.Pod, kinds []int) (all []part) {
	for _, kind := range kinds {
		if !f.Fits(p, kind) {
			continue
		}
		k := &f.Kinds[kind]
		share := p.ShareOf(k)
		all = append(all, part{kind: kind, strategy: Exclusive, replicas: 1, share: demand.Whole, weight: 1})
		if r := fam.replicas(p, k); r > 1 {
			all = append(all, part{kind: kind, strategy: fam.Shared, replicas: r, weight: 1 / float64(r)})
		}
		if g := fam.geometry(k); g != nil {
			if i := g.smallest(p.DeviceMemory, p.Share); i >= 0 {
				all = append(all, part{kind: kind, strategy: MIG, profile: i, geometry: g, weight: float64(g.Profiles[i].Size) / float64(g.Slices)})
			}
		}
		if fam.Claims && !p.Isolated {
			all = append(all, part{kind: kind, strategy: Claim, share: share, weight: float64(share) / demand.Whole})
		}
	}
	return all
}

// Names are the MIG instances of a device by the names of their profiles.
func (fam *Families) Names(k *demand.Kind, counts []int) map[string]int {
	named := map[string]int{}
	for i, n := range counts {
		if n > 0 {
			named[fam.Geometry(k).Profiles[i].Name] = n
		}
	}
	return named
}

// AnyGeometry reports whether MIG can divide any of the devices.
func AnyGeometry(f *demand.Fleet, fam Families) bool {
	return slices.ContainsFunc(f.Used(), func(kind int) bool { return fam.geometry(&f.Kinds[kind]) != nil })
}

func (fam *Families) geometry(k *demand.Kind) *Geometry {
	if !fam.MIG || fam.Geometry == nil {
		return nil
	}
	return fam.Geometry(k)
}

// replicas is the largest number of replicas of which one suffices; 1: the pod needs the device.
func (fam *Families) replicas(p *demand.Pod, k *demand.Kind) int {
	if p.Isolated {
		return 1
	}
	most := 1
	for _, r := range fam.Replicas {
		if r > most && fam.suffices(p, k, r) {
			most = r
		}
	}
	return most
}

// suffices reports whether one of so many replicas is enough for a pod.
func (fam *Families) suffices(p *demand.Pod, k *demand.Kind, replicas int) bool {
	return replicas*p.Share <= demand.Whole &&
		(p.DeviceMemory == 0 || k.DeviceMemory*(demand.Whole-fam.Reserve)/demand.Whole/int64(replicas) >= p.DeviceMemory)
}
