package observe

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/webhook/guardaccess"
)

// facts are the facts about one pod when it is observed.
type facts struct {
	key     string
	now     time.Time
	pod     *corev1.Pod
	promise *promise.Promise
	before  Observation // the last one
	at      Place
	guard   []*corev1.Event // of kubelets, about the guard, or made up
	agent   []agentReport
}

// judgment is the result of the facts about a pod.
type judgment struct {
	observation Observation
	guard       guardaccess.Report // the result of its guard; without an outcome: none yet
	wait        time.Duration      // until that is known; 0: it is, or never will be
	sentences   []sentence
	annotations map[string]string // those that change
}

// sentence is the content of one Event, reported once.
type sentence struct {
	reason, text string
	at           time.Time
	ownersOnly   bool // the pod has the Event
}
