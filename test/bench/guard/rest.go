package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// probePeriod is the period of the kubelet's liveness probe of the guard.
const probePeriod = 30 * time.Second

// rest watches a guard at default intervals over a tenant that uses half its
// slice.
func (k *kit) rest(d time.Duration) error {
	g, err := k.start(nil, io.Discard)
	if err != nil {
		return err
	}
	defer g.stop()
	tenant, _, err := g.run("hold 4GiB")
	if err != nil {
		return err
	}
	defer func() { _ = tenant.Process.Kill(); _ = tenant.Wait() }()
	time.Sleep(3 * time.Second) // past the start
	pid := g.cmd.Process.Pid
	before, err := cpu(pid)
	if err != nil {
		return err
	}
	time.Sleep(d)
	after, err := cpu(pid)
	if err != nil {
		return err
	}
	resident, err := residentMiB(pid)
	if err != nil {
		return err
	}
	percent := 100 * float64(after-before) / float64(d)
	probe := g.probeCost()
	fmt.Printf("resident memory at rest  %.1f MiB (aim: under 20)\n", resident)
	fmt.Printf("CPU at rest              %.3f %% of a core over %s, and %.3f %% for its probes each %s (aim: under 0.3 together; what the runtime\n",
		percent, d, 100*float64(probe)/float64(probePeriod), probePeriod)
	fmt.Printf("                         spends on starting a probe comes on top and is not measured here)\n")
	return nil
}

// cpu is the time that all threads of a process have run. The kernel counts it
// in nanoseconds there, where stat counts ticks of 10 ms.
func cpu(pid int) (time.Duration, error) {
	files, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task/*/schedstat"))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("read the CPU time of process %d: no threads: %w", pid, err)
	}
	var sum time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread ended
		}
		ran, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
		}
		sum += time.Duration(ran)
	}
	return sum, nil
}

func residentMiB(pid int) (float64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmRSS:" {
			kib, err := strconv.ParseFloat(fields[1], 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("read the memory of process %d: no VmRSS", pid)
}

// probeCost is the CPU time of one status command, on average.
func (g *guarded) probeCost() time.Duration {
	const probes = 20
	var sum time.Duration
	for range probes {
		cmd := exec.Command(g.kit.guard, "status", "--liveness", "--termination-message-path", g.status)
		_ = cmd.Run() // one that has a message to return fails
		sum += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return sum / probes
}
