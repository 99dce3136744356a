package quotametrics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/webhook/ledger"
)

const (
	sweepPeriod = 10 * time.Minute
	// abandoned is how long a ledger has to lie without a budget and without being written, which every reservation
	// does, before it is removed. Its youngest reservation has expired many times over then.
	unusedTTL = time.Hour
	sweepPage = 20 // ledgers of one list: each may have 900 KiB
)

// sweeper removes the ledgers of budgets that no longer exist. Removing a ledger that is used after all is safe: the delete
// names the version that was read, so that a reservation written meanwhile keeps the ledger, and a replica that remembers
// a deleted ledger admits nothing for a minute.
type sweeper struct {
	client    kubernetes.Interface
	namespace string
	log       logr.Logger
	unused    map[types.UID]unusedLedger
}

// unusedLedger is a ledger without a budget.
type unusedLedger struct {
	version string
	since   time.Time
}

// sweep reads all ledgers, and removes the ones that have been unused for unusedTTL.
func (s *sweeper) sweep(ctx context.Context, budgets []ledger.Budget, now time.Time) error {
	needed := map[string]bool{}
	for _, b := range budgets {
		needed[ledger.ObjectName(b.Key)] = true
	}
	unused := map[types.UID]unusedLedger{}
	var errs []error
	err := s.forEach(ctx, func(m *corev1.ConfigMap) {
		if needed[m.Name] || !strings.HasPrefix(m.Name, ledger.NamePrefix) {
			return
		}
		seen, ok := s.unused[m.UID]
		if !ok || seen.version != m.ResourceVersion {
			seen = unusedLedger{m.ResourceVersion, now}
		}
		unused[m.UID] = seen
		if now.Sub(seen.since) >= unusedTTL {
			errs = append(errs, s.remove(ctx, m))
		}
	})
	if err != nil {
		return err
	}
	s.unused = unused
	return errors.Join(errs...)
}

// forEach calls f with every ledger.
func (s *sweeper) forEach(ctx context.Context, f func(*corev1.ConfigMap)) error {
	options := metav1.ListOptions{LabelSelector: ledger.Label + "=true", Limit: sweepPage}
	for {
		list, err := s.client.CoreV1().ConfigMaps(s.namespace).List(ctx, options)
		if err != nil {
			return fmt.Errorf("list ledgers: %w", err)
		}
		for i := range list.Items {
			f(&list.Items[i])
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

func (s *sweeper) remove(ctx context.Context, m *corev1.ConfigMap) error {
	err := s.client.CoreV1().ConfigMaps(s.namespace).Delete(ctx, m.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion},
	})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil
	case err != nil:
		return fmt.Errorf("remove ledger %s of %s: %w", m.Name, m.Data["budget"], err)
	}
	s.log.Info("removed unused ledger", "object", "ConfigMap "+m.Namespace+"/"+m.Name, "budget", m.Data["budget"])
	return nil
}
