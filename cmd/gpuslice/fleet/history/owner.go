package history

import "regexp"

// Owner makes the pods of a workload. Kind is "" if it is unknown from the name of a pod.
type Owner struct{ Kind, Name string }

// useOwner notes what makes the pods of a workload, as kube-state-metrics knows it, where that is more than the name of a pod shows: a
// Deployment has ReplicaSets, and a CronJob has Jobs, with names of their own.
func (r *Records) useOwner(l labels, o Owner) take {
	byName := OwnerOf(l.pod)
	inBetween := o.Kind == "ReplicaSet" && byName.Kind == "Deployment" || o.Kind == "Job" && byName.Kind == "CronJob"
	if !inBetween && len(o.Kind) <= maxName && len(o.Name) <= maxName && len(r.owners) < MaxWorkloads {
		r.owners[Key{Cluster: l.cluster, Namespace: l.namespace, Workload: byName.Name}] = o
	}
	return ignore
}

// noteOwners gives each record the owner of its pods.
func (r *Records) noteOwners() {
	for key, record := range r.byKey {
		if o, known := r.owners[key.workload()]; known {
			record.Owner = o
		}
	}
}

// suffixes are how controllers name their pods. Kubernetes takes random characters from an alphabet without vowels and without 0, 1
// and 3 (k8s.io/apimachinery/pkg/util/rand).
var suffixes = []struct {
	kind    string
	pattern *regexp.Regexp
}{
	{"Deployment", regexp.MustCompile(`^(.+)-[bcdfghjklmnpqrstvwxz2456789]{6,10}-[bcdfghjklmnpqrstvwxz2456789]{5}$`)},
	{"CronJob", regexp.MustCompile(`^(.+)-[0-9]{8,11}-[bcdfghjklmnpqrstvwxz2456789]{5}$`)},
	{"", regexp.MustCompile(`^(.+)-[bcdfghjklmnpqrstvwxz2456789]{5}$`)}, // Job, DaemonSet, ReplicaSet
	{"StatefulSet", regexp.MustCompile(`^(.+)-[0-9]{1,5}$`)},
}

// OwnerOf is the owner of a pod, by the pod's name.
func OwnerOf(pod string) Owner {
	for _, s := range suffixes {
		if m := s.pattern.FindStringSubmatch(pod); m != nil {
			return Owner{s.kind, m[1]}
		}
	}
	return Owner{"Pod", pod}
}
