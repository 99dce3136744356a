package reports

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Store keeps Reports in a cluster.
type Store struct{ Client rest.Interface }

// Served reports whether the cluster has the API.
func (s Store) Served(ctx context.Context) (bool, error) {
	err := s.Client.Get().AbsPath("/apis/" + APIVersion).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find API %s: %w", APIVersion, err)
	}
	return true, nil
}

func reportPath(namespace, name string) string {
	path := "/apis/" + APIVersion
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return strings.TrimSuffix(path+"/reports/"+name, "/")
}

// Apply writes a Report over the one before.
func (s Store) Apply(ctx context.Context, r Report) error {
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	err = s.Client.Patch(types.ApplyPatchType).AbsPath(reportPath(r.Metadata.Namespace, r.Metadata.Name)).
		Param("fieldManager", reportName).Param("force", "true").Body(body).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("write report of namespace %s: %w", r.Metadata.Namespace, err)
	}
	return nil
}

// reportsPerPage is how many Reports are listed at once, without their results.
const reportsPerPage = "500"

// DeleteExcept deletes the Reports that an earlier audit wrote, except in some namespaces.
func (s Store) DeleteExcept(ctx context.Context, kept func(namespace string) bool) error {
	for next := ""; ; {
		text, err := s.Client.Get().AbsPath(reportPath("", "")).
			SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").
			Param("labelSelector", labelManagedBy+"="+reportName).Param("limit", reportsPerPage).Param("continue", next).DoRaw(ctx)
		if err != nil {
			return fmt.Errorf("list reports: %w", err)
		}
		var list metav1.PartialObjectMetadataList
		if err := json.Unmarshal(text, &list); err != nil {
			return fmt.Errorf("read reports: %w", err)
		}
		for _, r := range list.Items {
			if r.Name != reportName || kept(r.Namespace) {
				continue
			}
			err := s.Client.Delete().AbsPath(reportPath(r.Namespace, reportName)).Do(ctx).Error()
			if err != nil && !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete report of namespace %s: %w", r.Namespace, err)
			}
		}
		if next = list.Continue; next == "" {
			return nil
		}
	}
}
