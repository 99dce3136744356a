package workload

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOwnerOf(t *testing.T) {
	t.Parallel()
	owned := func(kind, name string, labels ...string) *metav1.ObjectMeta {
		m := &metav1.ObjectMeta{Name: "pod",
			OwnerReferences: []metav1.OwnerReference{{Kind: "Node", Name: "n"}, {Kind: kind, Name: name, Controller: new(true)}}}
		if len(labels) > 0 {
			m.Labels = map[string]string{"pod-template-hash": labels[0]}
		}
		return m
	}
	for name, tt := range map[string]struct {
		pod  *metav1.ObjectMeta
		want Owner
	}{
		"of a Deployment":          {owned("ReplicaSet", "web-5d9c", "5d9c"), Owner{"Deployment", "web"}},
		"of a ReplicaSet":          {owned("ReplicaSet", "web-5d9c"), Owner{"ReplicaSet", "web-5d9c"}},
		"of a ReplicaSet by hand":  {owned("ReplicaSet", "web", "5d9c"), Owner{"ReplicaSet", "web"}},
		"of a CronJob":             {owned("Job", "nightly-29401020"), Owner{"CronJob", "nightly"}},
		"of a Job":                 {owned("Job", "train"), Owner{"Job", "train"}},
		"of a StatefulSet":         {owned("StatefulSet", "db", "5d9c"), Owner{"StatefulSet", "db"}},
		"of a custom resource":     {owned("RayCluster", "ray"), Owner{"RayCluster", "ray"}},
		"without owner":            {&metav1.ObjectMeta{Name: "train"}, Owner{"Pod", "train"}},
		"with a generated name":    {&metav1.ObjectMeta{Name: "train-x7k2p", GenerateName: "train-"}, Owner{"Pod", "train"}},
		"not named yet":            {&metav1.ObjectMeta{GenerateName: "train-"}, Owner{"Pod", "train"}},
		"no name":                  {&metav1.ObjectMeta{}, Owner{}},
		"an owner that cannot be":  {owned("Deployment", "../web"), Owner{}},
		"a kind that cannot be":    {owned("Deploy\nment", "web"), Owner{}},
		"a name that is too long":  {owned("Job", strings.Repeat("a", 300)), Owner{}},
		"a kind that is too long":  {owned(strings.Repeat("A", 300), "web"), Owner{}},
		"a hash and nothing else":  {owned("ReplicaSet", "-5d9c", "5d9c"), Owner{}},
		"minutes and nothing else": {owned("Job", "-29401020"), Owner{}},
	} {
		if got := OwnerOf(tt.pod); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
