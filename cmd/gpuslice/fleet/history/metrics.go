package history

import (
	"math"

	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/sizing"
)

// dcgmUsed is the GPU memory that DCGM exporter measures, of a whole GPU or MIG instance, in MiB.
const (
	dcgmUsed   = "DCGM_FI_DEV_FB_USED"
	dcgmFree   = "DCGM_FI_DEV_FB_FREE"
	dcgmTotal  = "DCGM_FI_DEV_FB_TOTAL"
	dcgmPrefix = "DCGM_FI_"
)

// Metrics of kube-state-metrics: what makes a pod, and why a container terminated last.
const (
	podOwner       = "kube_pod_owner"
	lastTerminated = "kube_pod_container_status_last_terminated_reason"
	oomKilled      = "OOMKilled"
)

// Names of hourly increases of counters, if the server adds them up.
const (
	warningsOfHour     = "warnings:increase1h"
	terminationsOfHour = "terminations:increase1h"
	killsOfHour        = "kube_terminations:increase1h" // of kube-state-metrics
)

// metricUse takes a sample of a series.
type metricUse func(r *Records, s *series, seconds, value float64)

// metricUses are the known metrics: those of gpuslice's agents and guards, of DCGM exporter, and of inference engines.
var metricUses = map[string]metricUse{
	"gpuslice_agent_memory_used_bytes":  useBytes,
	"gpuslice_guard_memory_used_bytes":  useBytes,
	"gpuslice_agent_memory_peak_bytes":  usePeak,
	"gpuslice_guard_memory_peak_bytes":  usePeak,
	"gpuslice_agent_memory_slice_bytes": useSlice,
	"gpuslice_guard_memory_slice_bytes": useSlice,
	"gpuslice_agent_warnings_total":     useCounter(nearLimit),
	"gpuslice_guard_warnings_total":     useCounter(nearLimit),
	"gpuslice_agent_terminations_total": useCounter(terminated),
	"gpuslice_guard_terminations_total": useCounter(terminated),
	warningsOfHour:                      useHours(nearLimit),
	terminationsOfHour:                  useHours(terminated),
	killsOfHour:                         useHours(terminated),
	lastTerminated:                      useCounter(terminated),
	dcgmUsed:                            (*Records).add, // MiB
	dcgmFree:                            useFree,
	dcgmTotal:                           useDevice,
	"vllm:kv_cache_usage_perc":          useEngine,
	"vllm:gpu_cache_usage_perc":         useEngine,
	"sglang:token_usage":                useEngine,
}

func useBytes(r *Records, s *series, seconds, value float64) { r.add(s, seconds, value/mebibyte) }

// usePeak takes a peak when it rises: what happened between two samples. What the first one is of may be long ago, or, where the
// container appeared later than others, what happened since (notePeaks).
func usePeak(r *Records, s *series, seconds, value float64) {
	c := &s.counter
	if !(value >= 0) {
		return
	}
	if c.known && value > c.before {
		r.add(s, seconds, value/mebibyte)
	}
	if !c.known {
		c.first, c.began, c.peak = value, seconds, true
	}
	c.before, c.known = value, true
}

func useSlice(_ *Records, s *series, _, value float64)  { setMemory(&s.record.Slice, value/mebibyte) }
func useDevice(_ *Records, s *series, _, value float64) { setMemory(&s.record.Device, value) }

func nearLimit(e *sizing.Events) *int  { return &e.NearLimit }
func terminated(e *sizing.Events) *int { return &e.Terminated }

// useCounter adds up the increases of a counter of events. When it falls it began again from zero.
func useCounter(of func(*sizing.Events) *int) metricUse {
	return func(_ *Records, s *series, seconds, value float64) {
		c, sum := &s.counter, of(&s.record.Events)
		switch {
		case !(value >= 0 && value < maxCount) || c.known && seconds < c.latest:
			return
		case !c.known:
			c.first, c.began, c.sum = value, seconds, sum
		case value >= c.before:
			*sum += int(value - c.before)
		default:
			*sum += int(value)
		}
		c.before, c.latest, c.known = value, seconds, true
	}
}

// useHours adds up the hourly increases of a counter of events, which Prometheus extrapolates to a fraction.
func useHours(of func(*sizing.Events) *int) metricUse {
	return func(_ *Records, s *series, _, value float64) {
		if value > 0 && value < maxCount {
			*of(&s.record.Events) += int(math.Round(value))
		}
	}
}

// maxCount is above any count of events.
const maxCount = 1e9

// counter holds the state of a series of a counter, or of another number that rises.
type counter struct {
	before, latest float64 // value, and seconds
	known          bool
	first, began   float64 // value, and seconds
	sum            *int    // of its increases; nil: it is not added up
	peak           bool    // it is of memory
}

// useFree notes the least free memory: beside the highest use, the memory of the GPU.
func useFree(_ *Records, s *series, _, value float64) {
	if r := s.record; value >= 0 && value < 1<<24 && (r.free < 0 || value < r.free) {
		r.free = value
	}
}

// useEngine notes the highest part of its cache that an engine uses.
func useEngine(_ *Records, s *series, _, value float64) {
	if value > 0 && value <= 1 {
		s.record.EngineUse = max(s.record.EngineUse, value)
	}
}
