package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/gpuslice/gpuslice/policies"
	"github.com/gpuslice/gpuslice/policies/api"
	"github.com/gpuslice/gpuslice/webhook/bounded"
)

// TestLargePods has an audit read pods of a megabyte, of which no page has more than a few.
func TestLargePods(t *testing.T) {
	const pods = 60
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
		list := corev1.PodList{}
		for i := first; i < min(first+limit, pods); i++ {
			list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: fmt.Sprint("p", i),
				Annotations: map[string]string{"a": strings.Repeat("x", 500<<10)}}})
		}
		if first+limit < pods {
			list.Continue = strconv.Itoa(first + limit)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	config.Wrap(bounded.Limit)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	r := reader{Client: client.CoreV1().RESTClient(), PageSize: podsPerPage,
		InputOf: func(_ context.Context, pod *corev1.Pod) (policies.Input, error) {
			read++
			return policies.Input{Namespace: api.Namespace{Name: "team-a"}}, nil
		}}
	if err := r.each(t.Context(), "team-a", func(subject) {}); err != nil || read != pods {
		t.Errorf("%d of %d pods: %v", read, pods, err)
	}
}
