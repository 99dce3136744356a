package ops

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/test/cluster"
	"github.com/gpuslice/gpuslice/test/install"
	"github.com/gpuslice/gpuslice/webhook/leader"
)

// TestLeaseTaken takes the Lease from the one replica, which then leads no longer until the Lease ends: it answers all the while.
func TestLeaseTaken(t *testing.T) {
	t.Run("no call fails while the leader loses its Lease", func(t *testing.T) {
		l := newLab(t, cluster.Options{}, install.Options{Replicas: 1}, "")
		replica := l.Replicas[0]
		before, pid := l.calls(), replica.PID()
		l.awaitLeader(t, 1)
		load := l.load(8, l.judged)
		l.takeLease(t)
		l.awaitLeader(t, 0)
		lost := load.count()
		l.awaitLeader(t, 1)
		answered := load.count() - lost
		load.end()
		calls := l.calls().since(before)
		t.Logf("%.0f calls, %.0f unanswered; %d pods, %d of them while nobody led", calls.made, calls.unanswered, load.count(), answered)
		if text := load.failures(); text != "" || calls.unanswered > 0 {
			t.Errorf("%.0f calls were not answered; pods that failed:\n%s", calls.unanswered, text)
		}
		if answered == 0 {
			t.Error("no pod was judged while nobody led")
		}
		// Only the process that started at first serves the state at this address.
		if _, err := replica.State(t.Context()); err != nil || replica.PID() != pid {
			t.Errorf("process %d has ended, %d runs: %v", pid, replica.PID(), err)
		}
	})
}

// takeLease makes somebody else the holder, as of now.
func (l *lab) takeLease(t *testing.T) {
	t.Helper()
	leases := l.Server.Client.CoordinationV1().Leases(system)
	eventually(t, settles, "the Lease is taken", func() string {
		taken, err := leases.Get(t.Context(), leader.LeaseName, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		now := metav1.NowMicro()
		taken.Spec = coordinationv1.LeaseSpec{HolderIdentity: new("another"), LeaseDurationSeconds: new(int32(15)), AcquireTime: &now,
			RenewTime: &now}
		if _, err := leases.Update(t.Context(), taken, metav1.UpdateOptions{}); err != nil { // it was renewed meanwhile
			return err.Error()
		}
		return ""
	})
}

// awaitLeader waits until the replica reports whether it leads: 1 or 0.
func (l *lab) awaitLeader(t *testing.T, leads float64) {
	t.Helper()
	eventually(t, time.Minute, "the replica notices who leads", func() string {
		m, err := metricsOf(t.Context(), l.Replicas[0].Probes)
		if err != nil {
			return err.Error()
		}
		if m.sum("leader_election_master_status") != leads {
			return "it reports otherwise"
		}
		return ""
	})
}
