package peaks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/sizing"
	"github.com/gpuslice/gpuslice/policies/sizing/advice"
	"github.com/gpuslice/gpuslice/webhook/leader/days"
)

const (
	// history is how much of the record recommendations rest on, and following for how long their sizes are to hold: what gpuslice recommend
	// takes by default.
	history   = 14 * days.Length
	following = 7 * days.Length
)

// Recommend returns what the record recommends. A verdict that was reached before keeps its time. Sizes are learned from the workloads of
// the same namespace alone: no tenant can change what is recommended in the namespace of another. None is larger than the GPU.
func (r *Record) Recommend(before *advice.Book, now time.Time) (all []advice.Recommendation) {
	byNamespace := map[string]map[advice.Container]*sizing.Workload{}
	for of, w := range r.Workloads {
		if byNamespace[of.Namespace] == nil {
			byNamespace[of.Namespace] = map[advice.Container]*sizing.Workload{}
		}
		byNamespace[of.Namespace][of] = &sizing.Workload{Memory: &w.Memory, Slice: float64(w.Slice), Device: float64(w.Device), Events: w.Events}
	}
	for namespace, workloads := range byNamespace {
		list := slices.Collect(maps.Values(workloads))
		known := before.Of(namespace)
		var fleets [len(advice.Coverages)]*sizing.Fleet
		for i, coverage := range advice.Coverages {
			fleets[i] = sizing.NewFleet(list, float64(coverage)/100, following.Hours())
		}
		for of, w := range workloads {
			rec := advice.Recommendation{Container: of, Since: now, Slice: api.MiB(w.Slice)}
			for i, coverage := range advice.Coverages {
				e := fleets[i].Estimate(w)
				rec.Sizes[i] = api.MiB(math.Ceil(e.Size))
				if coverage == advice.DefaultCoverage {
					rec.Verdict, rec.Hours = e.Verdict, e.Hours
				}
			}
			if k := known[of]; k != nil && k.Verdict == rec.Verdict {
				rec.Since = k.Since
			}
			all = append(all, rec)
		}
	}
	return all
}

// advise writes what the record recommends.
func (s *session) advise(ctx context.Context, now time.Time) error {
	record, err := Read(ctx, s.Client, s.Namespace, now.Add(-history), now)
	if err != nil {
		return err
	}
	stored, inForce, before, err := s.readAdvice(ctx)
	if err != nil {
		return err
	}
	if before == nil && len(record.Workloads) == 0 {
		return nil
	}
	leftOut := record.fit(maxLines) // workloads that are gone would take the room of others, and of the time
	all := record.Recommend(before, now)
	if len(record.Unread) > 0 {
		s.Log.Info("recommended sizes that rest on days of the record that cannot be read stay as they were, unless the workload uses more since",
			"reason", errors.Join(record.Unread...).Error())
		all = record.keepLonger(all, before)
	}
	texts, beyond, err := advice.Encode(now, all)
	if err != nil {
		return err
	}
	if leftOut += beyond; leftOut > 0 {
		s.Log.Info("some workloads have no recommended size, since they are too many", "count", leftOut)
	}
	return s.putAdvice(ctx, texts, stored, inForce)
}

// readAdvice reads the ConfigMaps with recommended sizes, by name, and what is recommended: that of those in force.
func (s *session) readAdvice(ctx context.Context) (stored map[string]*corev1.ConfigMap,
	inForce map[string]bool, before *advice.Book, err error) {
	list, err := s.Client.CoreV1().ConfigMaps(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: advice.Label + "=true"})
	if err != nil {
		return nil, nil, nil, fmt.Errorf("list recommended sizes: %w", err)
	}
	stored, inForce = map[string]*corev1.ConfigMap{}, map[string]bool{}
	var texts []string
	for i := range list.Items {
		stored[list.Items[i].Name] = &list.Items[i]
		texts = append(texts, list.Items[i].Data[advice.Key])
	}
	before, err = advice.Decode(texts)
	if err != nil {
		s.Log.Error(err, "replacing recommended sizes that cannot be read")
	}
	if before != nil {
		for _, i := range before.Texts {
			inForce[list.Items[i].Name] = true
		}
	}
	return stored, inForce, before, nil
}

// keepLonger takes from before what rests on more hours, and what is missing: days that a newer build wrote are not read after a
// rollback. A workload at risk stays so, and no size stays that is known to be too small.
func (r *Record) keepLonger(all []advice.Recommendation, before *advice.Book) []advice.Recommendation {
	known := map[advice.Container]bool{}
	for i := range all {
		now := &all[i]
		known[now.Container] = true
		k := before.Of(now.Namespace)[now.Container]
		if k == nil || k.Hours <= now.Hours || now.Verdict == sizing.AtRisk {
			continue
		}
		was, _ := k.Size(advice.DefaultCoverage)
		is, _ := now.Size(advice.DefaultCoverage)
		if was > 0 && is == 0 && r.Workloads[now.Container].Memory.Peak() > float64(was) {
			continue
		}
		kept := *k
		for c, size := range k.Sizes {
			if size > 0 {
				kept.Sizes[c] = max(size, now.Sizes[c])
			}
		}
		if was > 0 && is > was {
			kept.Verdict, kept.Since, kept.Slice = now.Verdict, now.Since, now.Slice
		}
		*now = kept
	}
	for k := range before.All {
		if !known[k.Container] {
			all = append(all, *k)
		}
	}
	return all
}

// putAdvice writes the texts, and removes all other ConfigMaps that were read. Several texts are written beside those in force, so that
// these stay whole if the writing stops midway. One that was written since it was read is another leader's.
func (s *session) putAdvice(ctx context.Context, texts []string, stored map[string]*corev1.ConfigMap, inForce map[string]bool) error {
	maps := s.Client.CoreV1().ConfigMaps(s.Namespace)
	n := 0
	for _, text := range texts {
		for len(texts) > 1 && inForce[advice.NamePrefix+strconv.Itoa(n)] {
			n++
		}
		m := &corev1.ConfigMap{Data: map[string]string{advice.Key: text}, ObjectMeta: metav1.ObjectMeta{Name: advice.NamePrefix + strconv.Itoa(n),
			Labels: map[string]string{"app.kubernetes.io/name": "gpuslice", advice.Label: "true"}}}
		n++
		was := stored[m.Name]
		delete(stored, m.Name)
		var err error
		if was == nil {
			_, err = maps.Create(ctx, m, metav1.CreateOptions{})
		} else {
			m.ResourceVersion, m.UID = was.ResourceVersion, was.UID
			_, err = maps.Update(ctx, m, metav1.UpdateOptions{})
		}
		if err != nil {
			return fmt.Errorf("write recommended sizes: %w", err)
		}
	}
	for name, m := range stored {
		err := maps.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.UID}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove recommended sizes: %w", err)
		}
	}
	return nil
}
