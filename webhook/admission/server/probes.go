package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	library "sigs.k8s.io/controller-runtime/pkg/metrics"
)

// probeRoutes serves health, readiness, metrics and the state report.
func (s *Server) probeRoutes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+PathHealth, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET "+PathReady, func(w http.ResponseWriter, _ *http.Request) {
		if err := s.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	if s.options.State != nil {
		mux.HandleFunc("GET "+PathState, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(s.options.State())
		})
	}
	if s.options.Metrics != nil {
		mux.Handle("GET "+PathMetrics, s.options.Metrics.Handler(library.Registry))
	}
	return mux
}

// Ready returns why the server should not be sent reviews: nil when it should.
func (s *Server) Ready() error {
	if s.draining.Load() {
		return errors.New("draining")
	}
	var errs []error
	for _, check := range s.options.Checks {
		if err := check.Ready(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", check.Name, err))
		}
	}
	return errors.Join(errs...)
}
