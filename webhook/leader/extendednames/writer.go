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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"

	"github.com/gpuslice/gpuslice/webhook/leader"
)

const prefix = "extended-resources" // of the names of the entries

// New returns the writer of the entries in the validating configurations. names returns the names, sorted, or an error while they are
// unknown.
func New(client kubernetes.Interface, configurations []string, names func() ([]string, error), log logr.Logger) *leader.Writer[[]string] {
	return &leader.Writer[[]string]{Period: 5 * time.Second, Kind: "ValidatingWebhookConfiguration", Log: log,
		Failed: "pods that request GPUs by these names alone are not stopped at admission",
		Differ: func() (map[string][]string, error) {
			want, err := names()
			all := map[string][]string{}
			for _, configuration := range configurations {
				all[configuration] = want // whether it differs is read from the API server: nobody watches configurations
			}
			return all, err
		},
		Write: func(ctx context.Context, configuration string, want []string) error {
			return write(ctx, client.AdmissionregistrationV1().ValidatingWebhookConfigurations(), configuration, want, log)
		}}
}

func write(ctx context.Context, client typed.ValidatingWebhookConfigurationInterface, name string, want []string, log logr.Logger) error {
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read validating webhook configuration: %w", err)
	}
	patch, err := entriesPatch(live, want)
	if err != nil || patch == nil {
		return err
	}
	if _, err = client.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("patch validating webhook configuration: %w", err)
	}
	log.Info("extended resource names written", "object", "ValidatingWebhookConfiguration "+name, "names", want)
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
