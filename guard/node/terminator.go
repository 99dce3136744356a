package node

import (
	"context"
	"strings"

	"github.com/gpuslice/gpuslice/guard"
	"github.com/gpuslice/gpuslice/guard/mps"
	"github.com/gpuslice/gpuslice/guard/proc"
)

// terminator terminates processes of one pod, as the pod is known when the order
// is carried out.
type terminator struct {
	agent *Agent
	pod   *enforced
}

// Acquire implements guard.Terminator.
func (t terminator) Acquire(ctx context.Context, o guard.Order) (guard.Target, guard.Outcome) {
	now, promised := t.agent.Pods.Promise(t.pod.pod.UID)
	if !promised {
		return nil, guard.Outcome{Result: guard.Gone, Reason: "the pod has no promise of a slice by now"}
	}
	processes := now.on(t.agent.Node)
	signals := &proc.Terminator{Processes: processes, TermGrace: now.Limits.TermGrace, Open: t.agent.Open}
	clients := &mps.NodeTerminator{Daemons: t.agent.daemons(), Named: processes.Named, IsServer: t.agent.isServer,
		Fallback: now.Limits.MPSTermination, Next: signals}
	return clients.Acquire(ctx, o)
}

func (a *Agent) daemons() []mps.Daemon {
	if a.Daemons == nil {
		return nil
	}
	return a.Daemons()
}

// isServer reports whether a PID of the node is an MPS server: no tenant can be
// one.
func (a *Agent) isServer(pid int) bool {
	named, m := a.Node.Name(guard.Process{PID: pid})
	_, promised := a.Pods.Promise(m.PodUID)
	return !promised && IsMPSServer(named.Command)
}

// IsMPSServer reports whether a process has the name of an MPS server, of which the
// kernel keeps 15 bytes.
func IsMPSServer(command string) bool { return strings.HasPrefix(command, "nvidia-cuda-mps") }
