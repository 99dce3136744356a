// Package daystest helps to test what is kept in ConfigMaps.
package daystest

import (
	"errors"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// Client is a client whose ConfigMaps have versions, as an API server's have.
func Client() kubernetes.Interface {
	client := fake.NewClientset()
	versions, last := map[string]string{}, 0
	client.PrependReactor("*", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if gone, ok := a.(clienttesting.DeleteAction); ok {
			delete(versions, gone.GetName())
		}
		write, ok := a.(clienttesting.CreateAction) // an UpdateAction is one too
		if !ok {
			return false, nil, nil
		}
		m := write.GetObject().(*corev1.ConfigMap)
		if a.GetVerb() == "update" && versions[m.Name] != m.ResourceVersion {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, m.Name, errors.New("changed"))
		}
		last++
		m.ResourceVersion = strconv.Itoa(last)
		if a.GetVerb() == "update" || versions[m.Name] == "" {
			versions[m.Name] = m.ResourceVersion
		}
		return false, nil, nil
	})
	return client
}
