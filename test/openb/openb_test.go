package openb

import (
	"errors"
	"strings"
	"testing"
)

const header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"

func TestRead(t *testing.T) {
	const nodes = "sn,cpu_milli,memory_mib,gpu,model\na,1,2,3,T4\n"
	fleet, err := Read(strings.NewReader(nodes), strings.NewReader(header+"p,1,2,1,500,V100 | T4\n"))
	if err != nil || !fleet.Pods[0].MayUse(0) {
		t.Errorf("%v: %+v", err, fleet)
	}
	for _, c := range []struct{ nodes, pods, want string }{
		{nodes + "a,1,2,3,T4\n", header, `line 3: sn "a": two nodes have that name`},
		{nodes, header + "p,1,2,1,500,\np,1,2,1,500,\n", `line 3: name "p": two pods have that name`},
	} {
		if _, err := Read(strings.NewReader(c.nodes), strings.NewReader(c.pods)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// FuzzRead holds that any text is a fleet within bounds, or ErrFormat.
func FuzzRead(f *testing.F) {
	f.Add("sn,cpu_milli,memory_mib,gpu,model\na,1,2,3,T4\n", header+"p,1,2,1,500,T4|V100\n")
	f.Add("\ufeffsn,model,gpu,memory_mib,cpu_milli\n\"a\",T4,1,1,1\n", header+"p,0,0,0,0,\n")
	f.Add("\x1f\x8b", "")
	f.Fuzz(func(t *testing.T, nodes, pods string) {
		fleet, err := Read(strings.NewReader(nodes), strings.NewReader(pods))
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Errorf("%v is not ErrFormat", err)
			}
			return
		}
		for i := range fleet.Pods {
			if p := &fleet.Pods[i]; p.Name == "" || p.Devices < 0 || p.Share < 0 || p.Share > 1000 || p.Devices > 0 && p.Share == 0 {
				t.Errorf("%+v", p)
			}
		}
		for _, k := range fleet.Kinds {
			if k.CPU < 0 || k.Memory < 0 || k.Devices < 0 || k.Devices > maxDevices {
				t.Errorf("%+v", k)
			}
		}
	})
}
