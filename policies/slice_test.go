package policies

import "testing"

func TestClassOf(t *testing.T) {
	p := &Policy{DefaultSlice: &SliceSpec{Class: "small"}}
	for name, c := range map[string]struct {
		ask  ContainerRequest
		want string
	}{
		"nothing said":          {ContainerRequest{}, "small"},
		"a class":               {ContainerRequest{Ask: Ask{Class: "large"}}, "large"},
		"a size":                {ContainerRequest{Ask: Ask{Memory: 1}}, ""},
		"one shared GPU":        {ContainerRequest{Resource: ResourceGPUShared}, ""},
		"whatever a replica is": {ContainerRequest{Ask: Ask{Class: ClassReplica}}, ""},
	} {
		if got := classOf(p, c.ask); got != c.want {
			t.Errorf("%s: class %q, want %q", name, got, c.want)
		}
	}
}
