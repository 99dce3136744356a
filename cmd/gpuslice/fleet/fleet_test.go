package fleet_test

import (
	"bytes"
	"flag"
	"strings"
	"testing"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/program"
	"github.com/gpuslice/gpuslice/test/commandline"
)

var update = flag.Bool("update", false, "rewrite what is wanted in testdata")

func TestMain(m *testing.M) { commandline.Main(m) }

func TestCases(t *testing.T) {
	commandline.Cases{Folder: "testdata/cases", Shared: "../testdata", Update: *update}.Run(t)
}

// TestArguments: recommend takes workloads.
func TestArguments(t *testing.T) {
	var out, errs bytes.Buffer
	code := program.Run(t.Context(), strings.Fields("gpuslice recommend deployment/train --from none.csv"), commandline.StreamsTo(&out, &errs))
	if code != cli.ExitNoAnswer || !strings.Contains(errs.String(), "none.csv") {
		t.Errorf("exit %d, %q", code, errs.String())
	}
}
