package memoryapi

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

func TestPages(t *testing.T) {
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	s.WithoutWatchLists()
	for i := range 5 {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
		o.SetNamespace("a")
		o.SetName(fmt.Sprint("m", i))
		if err := s.Put(o); err != nil {
			t.Fatal(err)
		}
	}
	client, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	maps := client.CoreV1().ConfigMaps("a")
	var sizes []int
	for o := (metav1.ListOptions{Limit: 2}); ; {
		list, err := maps.List(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(list.Items))
		if o.Continue = list.Continue; o.Continue == "" {
			break
		}
	}
	if fmt.Sprint(sizes) != "[2 2 1]" {
		t.Errorf("pages of %v", sizes)
	}
	if list, err := maps.List(t.Context(), metav1.ListOptions{Limit: 2, ResourceVersion: "0"}); err != nil || len(list.Items) != 5 {
		t.Errorf("where any version will do: %v", err)
	}
	if _, err := maps.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: new(true),
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}); !apierrors.IsInvalid(err) {
		t.Errorf("a watch of a list: %v", err)
	}
}
