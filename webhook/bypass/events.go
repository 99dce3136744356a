package bypass

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gpuslice/gpuslice/policies"
)

// Reasons of the Events.
const (
	reasonBypassed = "GPUSliceBypassed"
	reasonEnded    = "GPUSliceBypassEnded"
)

// tell writes an Event in the namespace, for those who work there. Each bypass is told once, whoever leads: the Event's
// name is made of what it says.
func (k *Keeper) writeEvent(ctx context.Context, ns *corev1.Namespace, b policies.Bypass, reason string) error {
	kind, message := corev1.EventTypeWarning, fmt.Sprintf("gpuslice refuses nothing in this namespace until %s", b.Until.UTC().Format(time.RFC3339))
	if reason == reasonEnded {
		kind, message = corev1.EventTypeNormal, "gpuslice refuses again what breaks its policies: the bypass is over"
	}
	if b.By != "" {
		message += ", by " + shorten(b.By)
	}
	if b.Reason != "" {
		message += ": " + shorten(b.Reason)
	}
	now := metav1.Now()
	_, err := k.options.Client.CoreV1().Events(ns.Name).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("gpuslice-bypass.%x.%s", b.Until.Unix(), map[string]string{reasonBypassed: "begun", reasonEnded: "ended"}[reason]), Namespace: ns.Name},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: ns.Name, Namespace: ns.Name, UID: ns.UID},
		Reason:         reason, Message: message, Type: kind, Source: corev1.EventSource{Component: "gpuslice"},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("write Event: %w", err)
	}
	return nil
}

// shorten bounds what an annotation may add to an Event.
func shorten(text string) string {
	const most = 256
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "..."
}

// gauges say which namespaces are bypassed. A replica that does not lead says nothing.
type gauges struct {
	info, end *prometheus.GaugeVec
	known     map[string]bool
}

func newGauges() *gauges {
	return &gauges{
		info: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "gpuslice_bypass", Help: "1 for each namespace in which nothing is refused for a while.",
		}, []string{"namespace"}),
		end: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "gpuslice_bypass_end_timestamp_seconds", Help: "When the namespace's bypass ends; in the past: it could not be ended.",
		}, []string{"namespace"}),
		known: map[string]bool{},
	}
}

// keep makes these the bypasses that the metrics tell of.
func (g *gauges) set(standing map[string]time.Time) {
	for name := range g.known {
		if _, ok := standing[name]; !ok {
			g.info.DeleteLabelValues(name)
			g.end.DeleteLabelValues(name)
			delete(g.known, name)
		}
	}
	for name, until := range standing {
		g.info.WithLabelValues(name).Set(1)
		g.end.WithLabelValues(name).Set(float64(until.Unix()))
		g.known[name] = true
	}
}
