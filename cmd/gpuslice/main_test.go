package main

import (
	"flag"
	"testing"

	"github.com/gpuslice/gpuslice/test/commandline"
)

var update = flag.Bool("update", false, "rewrite the want sections of testdata/cases")

func TestMain(m *testing.M) { commandline.Main(m) }

func TestCases(t *testing.T) {
	commandline.Cases{Folder: "testdata/cases", Shared: "testdata", Update: *update}.Run(t)
}
