// Command functions counts how many functions of the project answer one review of a pod: how much of it one has to know
// to follow that review. It ends with an error where they are more than they may be.
//
//	go run -trimpath -cover -covermode=atomic -coverpkg=github.com/gpuslice/gpuslice/... ./test/functions [-v]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime/coverage"
	"slices"
	"strings"

	patch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/policies/promise"
	"github.com/gpuslice/gpuslice/test/scenarios"
	"github.com/gpuslice/gpuslice/webhook/admission/metrics"
	"github.com/gpuslice/gpuslice/webhook/admission/pods"
	"github.com/gpuslice/gpuslice/webhook/admission/review"
)

const scenario = "framework-pytorch-2-4" // a slice with a framework's cap

func main() {
	verbose := flag.Bool("v", false, "list the functions")
	flag.Parse()
	if err := count(*verbose); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// governed is a source for one namespace.
type governed policies.Input

// Input implements pods.Source.
func (g governed) Input(context.Context, string) (policies.Input, error) {
	return policies.Input(g), nil
}

// ClaimSpecs implements pods.Source.
func (g governed) ClaimSpecs(context.Context, string, *corev1.Pod) map[string]*resourcev1.ResourceClaimSpec {
	return g.Claims
}

// keys are keys that never change.
type keys struct{ promise.Keys }

// PromiseOf implements pods.Trust.
func (k keys) PromiseOf(_ context.Context, pod *corev1.Pod) *promise.Promise {
	return k.Keys.PromiseOf(pod)
}

// count sends one pod through both handlers, as it is created and as it is updated.
func count(verbose bool) error {
	all, err := scenarios.All()
	if err != nil {
		return err
	}
	s := all[slices.IndexFunc(all, func(s scenarios.Scenario) bool { return s.Name == scenario })]
	signing := promise.NewKeys([]byte("a key that signs nothing but this"))
	options := pods.Options{Source: governed(s.Governed()), Metrics: metrics.New("test"), Namespace: api.SystemNamespace}
	mutating := pods.NewMutator(options, func() promise.Keys { return signing })
	validating := pods.NewVerifier(options, keys{signing}, nil)

	create := review.Request{
		UID: "u", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespace: s.Namespace.Name, Operation: admissionv1.Create,
		Object: runtime.RawExtension{Raw: s.Pod},
	}
	created := create
	if created.Object.Raw, err = mutated(mutating, create); err != nil {
		return err
	}
	update := created
	update.Operation, update.OldObject = admissionv1.Update, created.Object
	over := false
	for _, c := range []struct {
		name    string
		handler review.Handler
		request review.Request
		most    int
	}{
		{"mutate CREATE", mutating, create, 275},
		{"validate CREATE, no quota", validating, created, 115},
		{"mutate UPDATE", mutating, update, 90},
		{"validate UPDATE", validating, update, 90},
	} {
		functions, err := functionsOf(c.handler, c.request)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Printf("%-26s %3d functions, at most %d\n", c.name, len(functions), c.most)
		if verbose {
			fmt.Println("\t" + strings.Join(functions, "\n\t"))
		}
		over = over || len(functions) > c.most
	}
	if over {
		return errors.New("more functions than a reader should have to know")
	}
	return nil
}

// mutated is the request's pod as the handler has it.
func mutated(handler review.Handler, request review.Request) ([]byte, error) {
	response, err := respond(handler, request)
	if err != nil {
		return nil, err
	}
	ops, err := patch.DecodePatch(response.Patch)
	if err != nil {
		return nil, err
	}
	return ops.Apply(request.Object.Raw)
}

// respond is the handler's answer as it is sent.
func respond(handler review.Handler, request review.Request) (*admissionv1.AdmissionResponse, error) {
	answer, fault := handler.Handle(context.Background(), request)
	if fault != nil {
		return nil, errors.New(fault.Message)
	}
	return answer.Response(request.UID)
}

// functionsOf are the functions of the project that answer a request. They have to allow it.
func functionsOf(handler review.Handler, request review.Request) (functions []string, err error) {
	dir, err := os.MkdirTemp("", "functions-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := coverage.ClearCounters(); err != nil {
		return nil, err
	}
	response, err := respond(handler, request)
	if err := errors.Join(err, coverage.WriteCountersDir(dir), coverage.WriteMetaDir(dir)); err != nil {
		return nil, err
	}
	if !response.Allowed {
		text, _ := json.Marshal(response.Result)
		return nil, fmt.Errorf("denied: %s", text)
	}
	out, err := exec.Command("go", "tool", "covdata", "func", "-i="+dir).Output()
	if err != nil {
		return nil, fmt.Errorf("go tool covdata: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line) // file:line: name percent
		if len(fields) == 3 && strings.Contains(fields[0], ".go:") && fields[2] != "0.0%" && !strings.Contains(fields[0], "/test/") {
			functions = append(functions, strings.TrimPrefix(fields[0], "github.com/gpuslice/gpuslice/")+" "+fields[1])
		}
	}
	return functions, nil
}
