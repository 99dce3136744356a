package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// trace is a generated trace of containers at a step in seconds: each loads models up to a peak of its own, that it reaches at some
// time of the day. Rows are shuffled, some are missing, and some are no number.
func trace(seed uint64, containers int, step float64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	var rows []string
	for c := range containers {
		peak, hours := 20_000*(1+r.Float64()), 23.0
		if c%10 == 9 {
			hours = 4
		}
		reached := peak * 0.6
		for at := 0.0; at < hours*3600; at += step {
			if r.Float64() < step/3600/3 {
				reached = max(reached, peak*(0.6+0.4*r.Float64()))
			}
			memory := fmt.Sprintf("%.0f", reached*(0.8+0.2*r.Float64()))
			switch r.IntN(50) {
			case 0:
				continue
			case 1:
				memory = "NaN"
			}
			rows = append(rows, fmt.Sprintf("c%d,%.0f,%s,50", c, at, memory))
		}
	}
	r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return "container,seconds,memory_mib,duty_percent\n" + strings.Join(rows, "\n")
}

func writeTraces(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		var b bytes.Buffer
		if strings.HasSuffix(name, ".gz") {
			z := gzip.NewWriter(&b)
			if _, err := z.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
			if err := z.Close(); err != nil {
				t.Fatal(err)
			}
		} else {
			b.WriteString(text)
		}
		if err := os.WriteFile(filepath.Join(folder, name), b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestBacktest runs it on containers that the code never saw, at three steps.
func TestBacktest(t *testing.T) {
	for _, step := range []float64{57, 300, 600} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			folder := writeTraces(t, map[string]string{
				"a_gpu_memory.csv": trace(1, 40, step), "b_gpu_memory_b.csv.gz": trace(2, 40, step),
				"gpu_memory_other.csv": "pod,value\na,1\n", "notes.txt": "none", "pods.csv": "container,seconds,memory_mib\nx,1,1\n",
			})
			out := filepath.Join(folder, "out.json")
			var printed strings.Builder
			if err := run(&printed, folder, out); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]result
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"1h", "3h", "6h", "9h", "11h"} {
				// containers of two files with the same name are two
				r := got[name]
				if r.Containers != 72 || r.TooShort != 8 || r.Stated != 95 {
					t.Errorf("%s: %+v", name, r)
				}
				if h := r.HalfSplits; h.Splits != halfSplits || h.Mean <= 0 || h.Mean > 10 || h.Percentile10 > h.Mean || h.Percentile90 < h.Mean {
					t.Errorf("%s: half splits %+v", name, h)
				}
				if math.Abs(r.Exceeded-5) > 3 || r.MedianSizeOverPeak > 1.5 || r.MedianSizeOverPeak < 1 {
					t.Errorf("%s: %+v", name, r)
				}
			}
		})
	}
}

func TestBacktestOfFew(t *testing.T) {
	folder := writeTraces(t, map[string]string{"gpu_memory.csv": trace(3, 8, 300)})
	histories, _, err := readTraces(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range backtest(histories, stated) {
		if r.Containers != 8 || r.FromTable != 8 || r.Exceeded > 20 {
			t.Errorf("%+v", r)
		}
	}
}

func TestBacktestOfBadFolders(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"nothing":      {},
		"no rows":      {"gpu_memory.csv": "container,seconds,memory_mib\n"},
		"no number":    {"gpu_memory.csv": "container,seconds,memory_mib\na,1,many\n"},
		"not gzip":     {"gpu_memory.csv.gz.csv": "a"},
		"quoted":       {"gpu_memory.csv": "\"container\",\"seconds\",\"memory_mib\"\r\na,1\r\n"},
		"other column": {"gpu_memory.csv": "a,b\n1,2\n"},
		"empty":        {"gpu_memory.csv": ""},
		"pods":         {"gpu_memory.csv": "pod,seconds,memory_mib\na,1,1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(&strings.Builder{}, writeTraces(t, files), ""); err == nil {
				t.Error("no error")
			}
		})
	}
}

// TestKinds estimates the hard kinds: what is exceeded was marked.
func TestKinds(t *testing.T) {
	if len(kinds) < 20 {
		t.Errorf("%d kinds", len(kinds))
	}
	for _, k := range backtestKinds(6) {
		if k.unmarked > 0 {
			t.Errorf("%s: %d of %d exceeded sizes have no mark", k.name, k.unmarked, k.exceeded)
		}
	}
}
