package main

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
)

// newHandler makes the one handler of every log line.
func newHandler(o Options, w io.Writer) (slog.Handler, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.LogLevel)); err != nil {
		return nil, fmt.Errorf("log-level: %q: accepted are debug, info, warn and error", o.LogLevel)
	}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: plainLevel}
	switch o.LogFormat {
	case "json":
		return slog.NewJSONHandler(w, options), nil
	case "text":
		return slog.NewTextHandler(w, options), nil
	}
	return nil, fmt.Errorf("log-format: %q: accepted are json and text", o.LogFormat)
}

// plainLevel names the many levels below info, which logr counts, with one word.
func plainLevel(groups []string, a slog.Attr) slog.Attr {
	if level, ok := a.Value.Any().(slog.Level); ok && len(groups) == 0 && a.Key == slog.LevelKey && level < slog.LevelInfo {
		a.Value = slog.StringValue("DEBUG")
	}
	return a
}

// newLogger joins the loggers of this command, client-go and controller-runtime to one handler.
func newLogger(o Options, w io.Writer) (logr.Logger, error) {
	handler, err := newHandler(o, w)
	if err != nil {
		return logr.Logger{}, err
	}
	log := logr.FromSlogHandler(handler)
	klog.SetLogger(log)
	ctrllog.SetLogger(log)
	return log, nil
}
