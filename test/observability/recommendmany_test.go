package observability

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/gpuslice/gpuslice/test/cluster"
)

// manySeries are of 20,000 workloads of ten pods, with a sample an hour.
const (
	manySeries = 200_000
	manyHours  = 12
)

// maxResident bounds the memory of the command, in MiB.
const maxResident = 500

// TestRecommendMany reads 200,000 series from a real Prometheus, and prints what that takes.
func TestRecommendMany(t *testing.T) {
	if !cluster.Wanted("long") {
		t.Skip("takes minutes and 3 GiB: set GPUSLICE_TEST=apiserver,long to run it")
	}
	bin, folder := programs(t), t.TempDir()
	command := filepath.Join(folder, "gpuslice")
	if err := cluster.Compile(t.Context(), cluster.Program{Package: "./cmd/gpuslice"}, command); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "metrics")
	writeMany(t, path)
	p := startPrometheus(t, bin["prometheus"], "{}", "--storage.tsdb.path="+createBlocks(t, bin["promtool"], path))
	p.ready()
	cmd := exec.CommandContext(t.Context(), command, "recommend", "--prometheus", "http://"+p.address,
		"--since", fmt.Sprintf("%dh", manyHours), "-o", "csv")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	resident := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
	t.Logf("%d series, %d workloads: %d MiB resident, %s, %s of CPU time", manySeries, bytes.Count(out.Bytes(), []byte("\n"))-1, resident,
		time.Since(began).Round(time.Second), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Round(time.Second))
	if rows := bytes.Count(out.Bytes(), []byte("\n")); rows != manySeries/10+1 || resident > maxResident {
		t.Errorf("%d rows, %d MiB resident, at most %d\n%s", rows, resident, maxResident, &errs)
	}
}

// writeMany writes the samples of the hours before now.
func writeMany(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	const letters = "bcdfghjklm"
	for i := range manySeries {
		for h := range manyHours {
			fmt.Fprintf(w, "gpuslice_agent_memory_used_bytes{namespace=\"team-%d\",pod=\"web%d-7f9c6d5b4-bbcd%c\",container=\"main\",device=\"GPU-%d\",node=\"n%d\"} %d %d\n",
				i/10%50, i/10, letters[i%10], i%8, i%5000, (4+i/10%7+h%3)*gib, time.Now().Add(time.Duration(h-manyHours)*time.Hour).Unix())
		}
	}
	fmt.Fprintln(w, "# EOF")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}
