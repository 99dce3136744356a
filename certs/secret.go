package certs

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// AnnotationRotate on the Secret begins the rotation of an authority of our own, whatever its value. It is removed when
// the successor is in the Secret.
const AnnotationRotate = "gpuslice.dev/rotate"

// SharedSecret is the Secret by which replicas agree.
type SharedSecret struct {
	Client          kubernetes.Interface
	Namespace, Name string
}

// content has the fields that change may alter. A Secret that does not exist has none of them.
type content struct {
	data        map[string][]byte
	annotations map[string]string
}

// agree reads the Secret, lets change alter its content, and writes the result over the version that was read. When
// somebody else wrote in between, everything is done again from the new version. wrote is false if change altered
// nothing.
func (s SharedSecret) agree(ctx context.Context, change func(*content) error) (wrote bool, err error) {
	secrets := s.Client.CoreV1().Secrets(s.Namespace)
	for range maxTries {
		read, err := secrets.Get(ctx, s.Name, metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		if missing {
			read = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace}}
		} else if err != nil {
			return false, fmt.Errorf("read Secret %s: %w", s.Name, err)
		}
		c := content{data: map[string][]byte{}, annotations: map[string]string{}}
		maps.Copy(c.data, read.Data)
		maps.Copy(c.annotations, read.Annotations)
		if err := change(&c); err != nil {
			return false, err
		}
		if maps.EqualFunc(c.data, read.Data, bytes.Equal) && maps.Equal(c.annotations, read.Annotations) {
			return false, nil
		}
		updated := read.DeepCopy()
		updated.Data, updated.Annotations = c.data, c.annotations
		if missing {
			_, err = secrets.Create(ctx, updated, metav1.CreateOptions{})
		} else {
			_, err = secrets.Update(ctx, updated, metav1.UpdateOptions{})
		}
		if conflict := apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err); conflict {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("write Secret %s: %w", s.Name, err)
		}
		return true, nil
	}
	return false, fmt.Errorf("write Secret %s: %w, %d times", s.Name, errConflict, maxTries)
}
