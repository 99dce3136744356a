// Package estimate is the command that computes what an inference engine takes of a GPU for a model that has not run yet.
package estimate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/gpuslice/fleet/enginememory"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/config"
)

const long = `Estimate the slice for a language model that has not run yet, from its configuration: what an inference engine keeps on each GPU for weights,
KV cache and itself, the slice that holds it, and the engine's flags for that slice; with --device-memory also its part of the
GPU. Nothing is downloaded. DIRECTORY has config.json and, if there
is one, model.safetensors.index.json or model.safetensors, whose size counts more than what is computed. What the files leave out is assumed, and
each assumption is printed. If no rule is known for the model's attention, there is no number for it, and no answer.

All amounts are for one GPU; --tensor-parallel is how many GPUs divide the model.

-o json prints {"apiVersion": "gpuslice.dev/v1", "kind": "ModelEstimate", ...} with weightsBytes, kvBytesPerToken, kvBytes, overheadBytes and
sliceBytes (null: unknown), attention, flags, assumed and unknown ("": everything is known). kvBytesPerToken is of each token that the engine's
log counts; kvBytes is the memory of --concurrency requests of --context tokens.`

const example = `  # the slice for a model that is on this disk, for 16 requests of 8192 tokens at a time, on a GPU of which the engine sees 80Gi
  gpuslice estimate /models/llama-3.1-8b --engine vllm --context 8192 --concurrency 16 --device-memory 80Gi

  # the same on two GPUs with a KV cache of 8 bits, for a program
  gpuslice estimate config.json --tensor-parallel 2 --kv-dtype fp8 -o json`

// options are the command's flags and its argument.
type options struct {
	path   string
	device string
	serve  enginememory.Run
	output cli.Output
}

// New returns the command.
func New(s cli.Streams) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "estimate DIRECTORY [flags]",
		Short:   "Estimate the slice for a model that has not run yet",
		Long:    long,
		Example: example,
		Args:    cobra.ArbitraryArgs, // RunE looks at them: a bad -o is reported first, as by all commands
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("name one directory of a model, or its config.json (%s --help)", cmd.CommandPath())
			}
			o.path = args[0]
			if o.device != "" {
				var memory api.MiB
				if err := memory.UnmarshalText([]byte(o.device)); err != nil || memory <= 0 {
					return fmt.Errorf("--device-memory %q: accepted: an amount of memory such as 80Gi", o.device)
				}
				o.serve.DeviceMemory = memory.Bytes()
			}
			return o.run(s)
		},
	}
	o.register(cmd.Flags())
	o.output.Register(cmd, cli.YAML, cli.JSONPath)
	return cmd
}

func (o *options) register(flags *pflag.FlagSet) {
	flags.StringVar(&o.serve.Engine, "engine", enginememory.Engines()[0],
		"`NAME` of the engine that serves the model: "+strings.Join(enginememory.Engines(), ", "))
	flags.IntVar(&o.serve.Context, "context", 8192, "`NUMBER` of tokens of a request, prompt and answer")
	flags.IntVar(&o.serve.Concurrency, "concurrency", 16, "`NUMBER` of requests at a time")
	flags.IntVar(&o.serve.TensorParallel, "tensor-parallel", 1, "`NUMBER` of GPUs that divide the model")
	flags.StringVar(&o.device, "device-memory", "",
		"`SIZE` of the memory of a GPU, as the engine sees it, such as 80Gi: of the whole GPU where it is shared, of a MIG instance its own")
	flags.StringVar(&o.serve.DType, "dtype", "",
		"`TYPE` of the weights that are not quantized: bfloat16, float16, float32 (default: as config.json)")
	flags.StringVar(&o.serve.KVDType, "kv-dtype", "",
		"`TYPE` of the KV cache, as the engine names it: fp8, fp8_e5m2, q8_0, ... (default: as the model)")
}

// modelEstimate is the document of -o json.
type modelEstimate struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	*enginememory.Estimate
}

// run prints an engine's memory for a model.
func (o *options) run(s cli.Streams) error {
	document, stored, err := o.read()
	if err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	e, err := enginememory.New(document, stored, o.serve)
	if err != nil {
		return fmt.Errorf("%s: %w", o.path, err)
	}
	answer := cli.Answer{Document: modelEstimate{config.APIVersion, "ModelEstimate", e}, Page: func() *cli.Page { return o.page(e) }}
	if err := o.output.Print(s.Out, answer); err != nil {
		return err
	}
	tally := cli.Tally{}
	if e.Unknown != "" {
		fmt.Fprintf(s.Err, "unknown: %s\n", e.Unknown)
		tally.NoAnswer = true
	}
	return tally.Exit()
}

// page is the answer for people.
func (o *options) page(e *enginememory.Estimate) *cli.Page {
	page := &cli.Page{}
	where := "on one GPU"
	if n := o.serve.TensorParallel; n > 1 {
		where = fmt.Sprintf("on each of %d GPUs", n)
	}
	page.Linef("%s, %d requests of %d tokens, %s", o.serve.Engine, o.serve.Concurrency, o.serve.Context, where)
	perToken := "unknown"
	if e.KVBytesPerToken != nil {
		perToken = fmt.Sprintf("%d bytes", *e.KVBytesPerToken)
	}
	page.Rows("  ", [][]string{
		{"attention", e.Attention},
		{"weights", amount(e.WeightsBytes)},
		{"KV cache per token", perToken},
		{"KV cache", amount(e.KVBytes)},
		{"overhead", amount(e.OverheadBytes)},
		{"slice", amount(e.SliceBytes)},
		{"flags", strings.Join(e.Flags, " ")},
	})
	if len(e.Assumed) > 0 {
		page.Line("assumed:")
	}
	for _, a := range e.Assumed {
		page.Line("  " + a)
	}
	return page
}

func amount(bytes *int64) string {
	if bytes == nil {
		return "unknown"
	}
	return api.MiB((*bytes + 1<<20 - 1) >> 20).Human()
}

// read reads config.json and the files beside it in a model's directory.
func (o *options) read() (document []byte, stored enginememory.Stored, err error) {
	path := o.path
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, stored, errors.New("there is no such directory or file here, and nothing is downloaded")
	}
	if err != nil {
		return nil, stored, err
	}
	if !info.IsDir() {
		if info.Mode().IsRegular() {
			if err = rejectWeights(path); err != nil {
				return nil, stored, err
			}
		}
		document, err = cli.ReadFile(path, enginememory.MaxConfig)
		return document, stored, err
	}
	if document, err = cli.ReadFile(filepath.Join(path, "config.json"), enginememory.MaxConfig); errors.Is(err, fs.ErrNotExist) {
		return nil, stored, withoutConfig(path)
	}
	if err != nil {
		return nil, stored, err
	}
	if stored.Quantization, err = cli.ReadFile(filepath.Join(path, "hf_quant_config.json"),
		enginememory.MaxConfig); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return nil, stored, err
	}
	if o.serve.Engine == enginememory.LlamaCPP {
		stored.Bytes, err = ggufBytes(path)
	} else {
		stored.Bytes, err = storedBytes(path)
	}
	return document, stored, err
}

const ofGGUF = "give the config.json of the model that the GGUF file was made of, with --engine llama.cpp; " +
	"in a directory with both, the file's size counts"

// rejectWeights returns an error for a file with weights in the place of a configuration.
func rejectWeights(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	magic := make([]byte, 4)
	_, err = io.ReadFull(file, magic)
	switch extension := filepath.Ext(path); {
	case err == nil && string(magic) == "GGUF":
		return errors.New("it is a GGUF file: " + ofGGUF)
	case slices.Contains([]string{".safetensors", ".bin", ".pt", ".pth"}, extension):
		return errors.New("it contains weights: give the config.json beside it, or the directory")
	}
	return nil
}

// otherFormats are files that a directory has in the place of config.json.
var otherFormats = []struct{ pattern, meaning string }{
	{"*.gguf", "there is a GGUF file: " + ofGGUF},
	{"adapter_config.json", "it is an adapter: give the model that it is for, whose memory is the larger part"},
	{"snapshots/*/config.json", "it is a model's folder in the cache of the Hugging Face hub: give the folder of a snapshot in it"},
	{"genai_config.json", "it is a model for ONNX Runtime, for which no rule is known"},
	{"model_index.json", "it is a pipeline of diffusers, for which no rule is known"},
	{"params.json", "it has the format of the model's authors: give the config.json that is published for transformers"},
}

// withoutConfig is the error about a directory without config.json.
func withoutConfig(directory string) error {
	for _, f := range otherFormats {
		if found, _ := fs.Glob(os.DirFS(directory), f.pattern); len(found) > 0 {
			return errors.New("it has no config.json; " + f.meaning)
		}
	}
	return errors.New("it has no config.json")
}

// ggufBytes is the size of the one GGUF file of a directory. 0: there is none, or a choice.
func ggufBytes(directory string) (int64, error) {
	files, err := os.ReadDir(directory)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", directory, err)
	}
	files = slices.DeleteFunc(files, func(f fs.DirEntry) bool { return filepath.Ext(f.Name()) != ".gguf" })
	if len(files) != 1 {
		return 0, nil
	}
	info, err := os.Stat(filepath.Join(directory, files[0].Name()))
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", directory, err)
	}
	return info.Size(), nil
}

// storedBytes is the size of all weights: as in the index, else that of the one file that has them all. 0: neither is there.
func storedBytes(directory string) (int64, error) {
	const name = "model.safetensors.index.json"
	index, err := cli.ReadFile(filepath.Join(directory, name), enginememory.MaxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		info, err := os.Stat(filepath.Join(directory, "model.safetensors"))
		if errors.Is(err, fs.ErrNotExist) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	if err != nil {
		return 0, err
	}
	size, err := enginememory.IndexBytes(index)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", name, err)
	}
	return size, nil
}
