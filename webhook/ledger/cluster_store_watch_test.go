package ledger

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestShownLedgerSize: whatever else is in a ledger's ConfigMap takes no memory.
func TestShownLedgerSize(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for name, data := range map[string]string{"a ledger": strings.Repeat("l", 10<<10), "none": ""} {
		kept, size := shownLedger(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "gpuslice-ledger-a", UID: "u", ResourceVersion: "1",
				Annotations: map[string]string{"a": long}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: long}}},
			Data: map[string]string{documentKey: data, "other": long}, BinaryData: map[string][]byte{"binary": []byte(long)},
		})
		c, ok := kept.(*corev1.ConfigMap)
		if !ok || c.Size() > size+512 || size == 0 {
			t.Errorf("%s: %T of %d bytes counts as %d", name, kept, c.Size(), size)
			continue
		}
		if o := objectOf(c); o.Name != "gpuslice-ledger-a" || o.UID != "u" || o.Version != "1" || string(o.Data) != data {
			t.Errorf("%s: %s", name, o.Name)
		}
	}
}
