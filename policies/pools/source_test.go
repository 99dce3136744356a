package pools_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gpuslice/gpuslice/policies/config"
	"github.com/gpuslice/gpuslice/policies/pools"
	"github.com/gpuslice/gpuslice/test/scenarios"
)

// published are the sources of all scenarios with ResourceSlices.
func published(t *testing.T) map[string]pools.Source {
	t.Helper()
	all, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]pools.Source{}
	for _, s := range all {
		if len(s.SliceFiles) > 0 {
			out[strings.Join(s.SliceFiles, " ")] = s.Source()
		}
	}
	if len(out) < 9 {
		t.Fatalf("%d scenarios have slices", len(out))
	}
	return out
}

// shares is NVIDIA's driver with four shares of each device.
func shares(t *testing.T) pools.Source {
	t.Helper()
	s, ok := published(t)["nvidia-h100-shares-4"]
	if !ok {
		t.Fatal("no scenario has nvidia-h100-shares-4")
	}
	return s
}

func TestSource(t *testing.T) {
	t.Run("slim_slices_give_the_same_pools", slimSlices)
	t.Run("qualified_names_give_the_same_pools", qualifiedNames)
	t.Run("the_order_of_slices_does_not_matter", orderOfSlices)
	t.Run("only_the_latest_generation_counts", latestGeneration)
	t.Run("a_device_plugin_beside_is_noted", devicePluginBeside)
	t.Run("a_declaration_takes_the_nodes", declaredNodes)
	t.Run("a_pool_is_remembered_without_the_names_of_its_nodes", rememberedPool)
	t.Run("only_of_a_gpu_memory_is_given_out_by_claim", sharesOfGPU)
	t.Run("a_slice_of_no_node_is_left_out", sliceOfNoNode)
	t.Run("another_driver_than_the_class_names_is_left_out", anotherDriver)
}

func slimSlices(t *testing.T) {
	for name, s := range published(t) {
		before := s.Pools(config.PoolsSpec{}, nil)
		slim := pools.Source{Nodes: s.Nodes, Classes: s.Classes}
		size := 0
		for _, r := range s.Slices {
			c := r.DeepCopy()
			slim.Slim(c)
			slim.Slices = append(slim.Slices, c)
			size += r.Size() - c.Size()
		}
		if after := slim.Pools(config.PoolsSpec{}, nil); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: pools %+v, of slim slices %+v", name, before, after)
		}
		if size <= 0 {
			t.Errorf("%s: nothing was dropped", name)
		}
	}
}

func qualifiedNames(t *testing.T) {
	for name, s := range published(t) {
		before := s.Pools(config.PoolsSpec{}, nil)
		for i, r := range s.Slices {
			s.Slices[i] = qualified(r)
		}
		if after := s.Pools(config.PoolsSpec{}, nil); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: pools %+v, of qualified names %+v", name, before, after)
		}
	}
}

func orderOfSlices(t *testing.T) {
	for name, s := range published(t) {
		before := s.Pools(config.PoolsSpec{}, nil)
		s.Slices = slices.Clone(s.Slices)
		slices.Reverse(s.Slices)
		if after := s.Pools(config.PoolsSpec{}, nil); !reflect.DeepEqual(before, after) {
			t.Errorf("%s: pools %+v, in another order %+v", name, before, after)
		}
	}
}

func latestGeneration(t *testing.T) {
	s := shares(t)
	newer := s.Slices[0].DeepCopy()
	newer.Name, newer.Spec.Pool.Generation = "newer", 2
	for i := range newer.Spec.Devices {
		newer.Spec.Devices[i].Capacity["shares"] = capacity("2", "1")
	}
	s.Slices = append(s.Slices, newer)
	if p := s.Pools(config.PoolsSpec{}, nil); len(p) != 1 || p[0].Replicas != 2 {
		t.Errorf("pools are %+v, want one with 2 replicas", p)
	}
}

func devicePluginBeside(t *testing.T) {
	s := shares(t)
	node := s.Nodes[0].DeepCopy()
	node.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("2")
	s.Nodes = []*corev1.Node{node}
	p := s.Pools(config.PoolsSpec{}, nil)
	if len(p) != 1 || p[0].DeviceClass != "" || !strings.Contains(strings.Join(p[0].Notes, "\n"), "given out twice") {
		t.Errorf("pools are %+v, want the plugin's with a note", p)
	}
}

func declaredNodes(t *testing.T) {
	s := shares(t)
	spec := config.PoolsSpec{Declared: []config.PoolSpec{
		{Name: "mine", Resource: "nvidia.com/gpu", Strategy: "time-slicing", Selector: map[string]string{"nvidia.com/gpu.present": "true"}},
	}}
	p := s.Pools(spec, nil)
	if len(p) != 1 || p[0].Name != "mine" || p[0].Replicas != 4 || p[0].DeviceMemory != 81559 || !p[0].HasNode("dra-h100-1") {
		t.Errorf("pools are %+v, want the declared one with what the driver publishes", p)
	}
}

func rememberedPool(t *testing.T) {
	s := published(t)["nvidia-h100-and-a100"]
	before := s.Pools(config.PoolsSpec{}, nil)
	for _, p := range before {
		if !named(p) {
			t.Errorf("pool %s does not name its nodes", p.Name)
		}
	}
	after := pools.Source{}.Remember(config.PoolsSpec{}, pools.Known{Before: before, Now: time.Now()})
	if len(after) != len(before) || slices.ContainsFunc(after, named) {
		t.Errorf("remembered are %+v", after)
	}
}

func sharesOfGPU(t *testing.T) {
	for kind, c := range map[string]struct {
		product string
		want    int
	}{"gpu": {"", 1}, "ram": {"", 0}, "nic": {"a product", 0}, "": {"", 0}, "-": {"a product", 1}} {
		s := published(t)["nvidia-h100-shares-memory"]
		other := s.Slices[len(s.Slices)-1].DeepCopy()
		other.Spec.Driver = "memory.example"
		for i := range other.Spec.Devices {
			d := &other.Spec.Devices[i]
			d.Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &kind},
				"productName": {StringValue: &c.product}}
			if kind == "-" {
				delete(d.Attributes, "type")
			}
		}
		s.Slices = []*resourcev1.ResourceSlice{other}
		s.Classes = map[string]*resourcev1.DeviceClass{"memory": {Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
			{CEL: &resourcev1.CELDeviceSelector{Expression: "device.driver == 'memory.example'"}}}}}}
		s.Classes["memory"].Name = "memory"
		if p := s.Pools(config.PoolsSpec{}, nil); len(p) != c.want || c.want > 0 && p[0].DeviceDriver != "memory.example" {
			t.Errorf("type %q, product %q: pools are %+v, want %d", kind, c.product, p, c.want)
		}
	}
}

func sliceOfNoNode(t *testing.T) {
	s := shares(t)
	elsewhere, nowhere := s.Slices[0].DeepCopy(), s.Slices[0].DeepCopy()
	*elsewhere.Spec.NodeName, nowhere.Spec.NodeName = "another", nil
	s.Slices = []*resourcev1.ResourceSlice{elsewhere, nowhere, nil}
	if p := s.Pools(config.PoolsSpec{}, nil); len(p) > 0 {
		t.Errorf("pools are %+v, want none", p)
	}
}

func anotherDriver(t *testing.T) {
	s := shares(t)
	other := s.Slices[0].DeepCopy()
	other.Spec.Driver = "dram.example.com"
	s.Slices = []*resourcev1.ResourceSlice{other}
	if p := s.Pools(config.PoolsSpec{}, nil); len(p) > 0 {
		t.Errorf("pools are %+v, want none", p)
	}
}

func named(p pools.Pool) bool {
	return slices.ContainsFunc(p.Requirements, func(r corev1.NodeSelectorRequirement) bool { return r.Key == corev1.LabelHostname })
}

func capacity(value, byDefault string) resourcev1.DeviceCapacity {
	d := resource.MustParse(byDefault)
	return resourcev1.DeviceCapacity{Value: resource.MustParse(value), RequestPolicy: &resourcev1.CapacityRequestPolicy{Default: &d}}
}

// qualified is a slice whose attributes and capacities have the driver's name before them.
func qualified(r *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	out := r.DeepCopy()
	for i := range out.Spec.Devices {
		d := &out.Spec.Devices[i]
		attributes, capacities := maps.Clone(d.Attributes), maps.Clone(d.Capacity)
		clear(d.Attributes)
		clear(d.Capacity)
		for name, value := range attributes {
			d.Attributes[resourcev1.QualifiedName(out.Spec.Driver)+"/"+name] = value
		}
		for name, value := range capacities {
			d.Capacity[resourcev1.QualifiedName(out.Spec.Driver)+"/"+name] = value
		}
	}
	return out
}
