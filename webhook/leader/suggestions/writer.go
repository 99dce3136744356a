package suggestions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/sizing"
	"github.com/gpuslice/gpuslice/policies/sizing/advice"
	"github.com/gpuslice/gpuslice/webhook/events"
	"github.com/gpuslice/gpuslice/webhook/governed"
	"github.com/gpuslice/gpuslice/webhook/leader"
)

// Reasons of the Events.
const (
	reasonOverRequested = "GPUSliceOverRequested"
	reasonAtRisk        = "GPUSliceAtRisk"
)

const (
	period = 10 * time.Minute
	// window is how long after its time an Event may be written: as long as the API server keeps Events, so that a new leader does
	// not repeat it.
	window = time.Hour
	repeat = 24 * time.Hour
	// oversized is how long a workload is over-requested before it has an Event.
	oversized = 7 * 24 * time.Hour

	// Of one pass. Who may create pods decides how many workloads there are.
	maxEvents      = 200
	maxOfNamespace = 20
	step           = 256 // MiB, that a suggested size is rounded up to
	callTimeout    = 10 * time.Second
)

// Options configure a Writer.
type Options struct {
	Client   kubernetes.Interface
	Advice   func() *advice.Book // that counts now; nil: nothing is recommended
	Governed governed.Source
	Log      logr.Logger
}

// Writer writes the Events.
type Writer struct {
	options Options
	owners  *events.Owners
	written map[advice.Container]time.Time // the time of the last Event
	next    string                         // the namespace with which the next pass begins; "": the first
}

// New returns a Writer.
func New(o Options) *Writer {
	return &Writer{options: o, owners: events.NewOwners(o.Client), written: map[advice.Container]time.Time{}}
}

// Run writes Events until ctx ends.
func (w *Writer) Run(ctx context.Context) error {
	leader.Every(ctx, period, w.pass)
	return nil
}

// pass writes the Events whose time has come.
func (w *Writer) pass(ctx context.Context) {
	book := w.options.Advice()
	namespaces, err := w.options.Governed()
	if err != nil {
		return // not read yet
	}
	slices.SortFunc(namespaces, func(a, b governed.Namespace) int { return cmp.Compare(a.Name, b.Name) })
	first, _ := slices.BinarySearchFunc(namespaces, w.next, func(n governed.Namespace, name string) int { return cmp.Compare(n.Name, name) })
	namespaces, w.next = slices.Concat(namespaces[first:], namespaces[:first]), ""
	all, now := 0, time.Now()
	for i := range namespaces {
		if p := namespaces[i].Policy; p == nil || !p.Sizing.Suggest {
			continue
		}
		own := 0
		for of, r := range book.Of(namespaces[i].Name) {
			at, due := dueAt(r, now)
			if !due || w.written[of].Equal(at) {
				continue
			}
			if own++; all >= maxEvents || own > maxOfNamespace { // the rest have their turn in the next pass
				if all >= maxEvents {
					w.next = cmp.Or(w.next, namespaces[i].Name)
				}
				break
			}
			all++
			if err := w.suggest(ctx, r, at); err != nil {
				w.options.Log.Error(err, "size not suggested", "object", r.Owner.Kind+" "+r.Namespace+"/"+r.Name)
				continue
			}
			w.written[of] = at
		}
	}
	for of, at := range w.written {
		if now.Sub(at) > 2*repeat {
			delete(w.written, of)
		}
	}
}

// dueAt is the time of the latest Event of a recommendation, and whether it may still be written.
func dueAt(r *advice.Recommendation, now time.Time) (at time.Time, due bool) {
	switch {
	case r.Verdict == sizing.AtRisk:
		at = r.Since
	case r.Verdict == sizing.OverRequested && sizeOf(r) > 0 && sizeOf(r) < r.Slice:
		at = r.Since.Add(oversized)
	default:
		return time.Time{}, false
	}
	if now.Before(at) {
		return at, false
	}
	at = at.Add(now.Sub(at) / repeat * repeat)
	return at, now.Sub(at) < window
}

// suggest writes the Event on the workload, if it exists.
func (w *Writer) suggest(ctx context.Context, r *advice.Recommendation, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	object, err := w.owners.Named(ctx, r.Namespace, r.Kind, r.Name)
	if object == nil || err != nil {
		return err
	}
	e := events.Event{Object: *object, Type: corev1.EventTypeWarning, Reason: reasonAtRisk, Message: atRisk(r)}
	if r.Verdict == sizing.OverRequested {
		e.Type, e.Reason = corev1.EventTypeNormal, reasonOverRequested
		e.Message = fmt.Sprintf("container %s requests %s of GPU memory, and %s is enough by %.0f hours of history: write the label %s: %q",
			r.Container.Container, r.Slice, sizeOf(r), r.Hours, api.LabelMemory, sizeOf(r))
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", object.UID, r.Container.Container, at.Unix()))
	e.Name = fmt.Sprintf("gpuslice-size.%x", key[:12])
	return events.Once(ctx, w.options.Client, e)
}

// atRisk is the message for a workload that may exceed its slice.
func atRisk(r *advice.Recommendation) string {
	text := fmt.Sprintf("container %s may exceed its slice", r.Container.Container)
	if r.Slice > 0 {
		text += " of " + r.Slice.String()
	}
	if size := sizeOf(r); size > r.Slice {
		return text + fmt.Sprintf(": %.0f hours of history recommend %s; write the label %s: %q", r.Hours, size, api.LabelMemory, size)
	}
	return text +
		fmt.Sprintf(": it came near it, processes were terminated, or its memory rises without end; see gpuslice recommend -n %s", r.Namespace)
}

// sizeOf is the size at the coverage of the verdict, rounded up; 0: there is none.
func sizeOf(r *advice.Recommendation) api.MiB {
	size, _ := r.Size(advice.DefaultCoverage)
	return (size + step - 1) / step * step
}
