package rules

import (
	"fmt"

	"github.com/gpuslice/gpuslice/policies/internal/message"
)

// nodeName denies a node set by hand: it passes the scheduler, which counts the shares of every GPU. Controllers do not
// write it either; a DaemonSet's pods are placed by affinity.
var nodeName = Rule{Reason: "nodeName in a slice", Find: func(s Subject) []string {
	if s.Pod.Spec.NodeName == "" {
		return nil
	}
	return []string{fmt.Sprintf("spec.nodeName is %s, which passes the scheduler by", message.Quote(s.Pod.Spec.NodeName))}
}, Instead: "remove it, and write spec.nodeSelector: {kubernetes.io/hostname: ...} where it has to be that node"}
