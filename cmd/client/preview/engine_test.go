package preview

import (
	"encoding/json"
	"errors"
	"testing"

	"gomodules.xyz/jsonpatch/v2"

	"github.com/gpuslice/gpuslice/cmd/client/cli"
	"github.com/gpuslice/gpuslice/cmd/client/manifest"
	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/policies/rawpod"
)

func TestEvaluate(t *testing.T) {
	t.Run("a panic ends one object as an internal error", func(t *testing.T) {
		e := engineFor(t, "apiVersion: gpuslice.dev/v1\n")
		e.create = func(policies.Input, rawpod.Raw, promise.Keys) (policies.Decision, []jsonpatch.Operation) {
			panic("a broken invariant")
		}
		_, err := e.Evaluate(t.Context(),
			manifest.Object{Kind: "Pod", APIVersion: "v1", Raw: json.RawMessage(`{"apiVersion":"v1","kind":"Pod","spec":{"containers":[]}}`)})
		if !errors.Is(err, cli.ErrInternal) {
			t.Fatalf("error: %v", err)
		}
		var seen Results
		seen.fail(manifest.Error{Err: errors.New("not YAML")})
		seen.fail(manifest.Error{Err: err})
		if code := seen.Exit(); code != cli.ExitError(cli.ExitInternal) {
			t.Errorf("exit: %v", code)
		}
	})
}
