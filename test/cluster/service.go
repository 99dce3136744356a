package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// SetEndpoints makes backends (host:port of listeners on this machine) the ready endpoints of a Service, in
// place of those of an earlier call; without any, the Service has none. A Service that does not exist
// yet is made, with port 443. The API server learns of it through a watch, some milliseconds later. The
// cluster of a node takes none: there, pods stand behind Services.
func (s *APIServer) SetEndpoints(ctx context.Context, namespace, service string, backends ...string) error {
	if s.egress == nil {
		return fmt.Errorf("set endpoints of service %s/%s: on a node, pods stand behind Services", namespace, service)
	}
	svc, err := s.service(ctx, namespace, service)
	if err != nil {
		return err
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: service + "-test", Namespace: namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: "test"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, p := range svc.Spec.Ports {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &p.Name, Port: &p.Port, Protocol: &p.Protocol})
	}
	ready := true
	for _, b := range backends {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{s.egress.address(b).String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		})
	}
	slices := s.Client.DiscoveryV1().EndpointSlices(namespace)
	_, err = slices.Update(ctx, slice, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = slices.Create(ctx, slice, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("set endpoints of service %s/%s: %w", namespace, service, err)
	}
	return s.setOldEndpoints(ctx, slice, service)
}

// readsEndpointSlices is the first minor version of API servers that find the endpoints of a webhook's Service in EndpointSlices.
const readsEndpointSlices = 33

// setOldEndpoints writes a slice as Endpoints, for an API server that reads those.
func (s *APIServer) setOldEndpoints(ctx context.Context, slice *discoveryv1.EndpointSlice, service string) error {
	info, err := s.Client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("read the version of the API server: %w", err)
	}
	if v, err := version.ParseGeneric(info.GitVersion); err != nil || v.Minor() >= readsEndpointSlices {
		return err
	}
	//nolint:staticcheck // such an API server reads nothing else
	old := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: service, Namespace: slice.Namespace}, Subsets: []corev1.EndpointSubset{{}}}
	for _, p := range slice.Ports {
		old.Subsets[0].Ports = append(old.Subsets[0].Ports, corev1.EndpointPort{Name: *p.Name, Port: *p.Port, Protocol: *p.Protocol})
	}
	for _, e := range slice.Endpoints {
		old.Subsets[0].Addresses = append(old.Subsets[0].Addresses, corev1.EndpointAddress{IP: e.Addresses[0]})
	}
	endpoints := s.Client.CoreV1().Endpoints(slice.Namespace)
	if _, err = endpoints.Update(ctx, old, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
		_, err = endpoints.Create(ctx, old, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("set endpoints of service %s/%s: %w", slice.Namespace, service, err)
	}
	return nil
}

// service returns the Service, having made it where there was none.
func (s *APIServer) service(ctx context.Context, namespace, name string) (*corev1.Service, error) {
	services := s.Client.CoreV1().Services(namespace)
	svc, err := services.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		svc, err = services.Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("find service %s/%s: %w", namespace, name, err)
	}
	return svc, nil
}
