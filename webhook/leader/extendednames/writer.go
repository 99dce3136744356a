// Package extendednames makes the API server call for pods that request GPUs by the extended resource names of device
// classes. A manifest's match conditions cannot know these names, and conditions that let any name through would delay
// pods that use no GPU, and deny them while the webhook is down. The names are written into entries that match nothing
// without them.
package extendednames

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gpuslice/gpuslice/webhook/leader"
)

const (
	prefix      = "extended-resources" // of the names of the entries
	syncPeriod  = 5 * time.Second      // between two comparisons with the device classes
	callTimeout = 5 * time.Second
)

// Writer writes the entries. Run it in one replica at a time.
type Writer struct {
	Client         kubernetes.Interface
	Configurations []string                 // the validating ones that call this server
	Names          func() ([]string, error) // sorted; an error while they are unknown
	Log            logr.Logger

	logged string // the last error
}

// Run writes until ctx ends.
func (w *Writer) Run(ctx context.Context) error {
	leader.Every(ctx, syncPeriod, w.sync)
	return nil
}

// sync writes the entries until they have the names. The next sync repeats failed writes, and logs a failure once.
func (w *Writer) sync(ctx context.Context) {
	names, err := w.Names()
	if err != nil {
		return
	}
	var failed string
	for _, name := range w.Configurations {
		if err := w.write(ctx, name, names); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			failed = err.Error()
			if failed != w.logged {
				w.Log.Error(err, "pods that request GPUs by these names alone are not stopped at admission", "configuration", name, "names", names)
			}
		}
	}
	w.logged = failed
}

func (w *Writer) write(ctx context.Context, configuration string, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	client := w.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	live, err := client.Get(ctx, configuration, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read validating webhook configuration: %w", err)
	}
	patch, err := entriesPatch(live, names)
	if err != nil || patch == nil {
		return err
	}
	if _, err = client.Patch(ctx, configuration, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patch validating webhook configuration: %w", err)
	}
	w.Log.Info("extended resource names written", "configuration", configuration, "names", names)
	return nil
}

// entriesPatch is a JSON patch that touches nothing but rules and matchConditions of the entries, and fails unless the
// configuration is as it was read; nil: the entries have the names.
func entriesPatch(live *admissionv1.ValidatingWebhookConfiguration, names []string) ([]byte, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	ops := []operation{{"add", "/metadata/resourceVersion", live.ResourceVersion}}
	rules, conditions := asked(names)
	for i, entry := range live.Webhooks {
		if !strings.HasPrefix(entry.Name, prefix) {
			continue
		}
		at := "/webhooks/" + strconv.Itoa(i)
		if !equality.Semantic.DeepEqual(entry.Rules, rules) || !equality.Semantic.DeepEqual(entry.MatchConditions, conditions) {
			ops = append(ops, operation{"add", at + "/rules", rules}, operation{"add", at + "/matchConditions", conditions})
		}
	}
	if len(ops) == 1 {
		return nil, nil
	}
	return json.Marshal(ops)
}

// asked is the match of an entry: new pods that request one of the names, and without names nothing. Pods with more
// resources than the condition goes through are reviewed whatever they request, by another entry.
func asked(names []string) ([]admissionv1.RuleWithOperations, []admissionv1.MatchCondition) {
	if len(names) == 0 {
		return []admissionv1.RuleWithOperations{}, []admissionv1.MatchCondition{}
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	rule := admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"},
			Resources: []string{"pods"}, Scope: new(admissionv1.NamespacedScope)},
	}
	condition := admissionv1.MatchCondition{Name: "requests-a-gpu-by-the-name-of-its-device-class", Expression: fmt.Sprintf(
		"[object.spec.containers + object.spec.?initContainers.orValue([])].exists(all, "+
			"all.size() <= 500 && all.map(c, c.?resources.?limits.orValue({}).size() + c.?resources.?requests.orValue({}).size()).sum() <= 500 && "+
			"all.exists(c, [c.?resources.?limits.orValue({}), c.?resources.?requests.orValue({})].exists(list, list.exists(name, name in [%s]))))",
		strings.Join(quoted, ", "))}
	return []admissionv1.RuleWithOperations{rule}, []admissionv1.MatchCondition{condition}
}
