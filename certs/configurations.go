package certs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Configurations are the webhook configurations that call this server, by name. No others are read or written. One that
// does not exist is left out: nobody calls on its behalf.
type Configurations struct {
	Client     kubernetes.Interface
	Mutating   []string
	Validating []string
}

// configuration is a live webhook configuration.
type configuration struct {
	name, version string
	hooks         []hook
	patch         func(ctx context.Context, patch []byte) error
}

// hook is one entry of it: how the API server calls, and whom it trusts.
type hook struct {
	name, host string
	bundle     []byte
}

// read returns the configurations that exist.
func (c Configurations) read(ctx context.Context) ([]configuration, error) {
	api := c.Client.AdmissionregistrationV1()
	mutating, err := readEach(ctx, "mutating", c.Mutating, api.MutatingWebhookConfigurations(),
		func(found *admissionv1.MutatingWebhookConfiguration) (hooks []hook) {
			for _, w := range found.Webhooks {
				hooks = append(hooks, newHook(w.Name, w.ClientConfig))
			}
			return hooks
		})
	if err != nil {
		return nil, err
	}
	validating, err := readEach(ctx, "validating", c.Validating, api.ValidatingWebhookConfigurations(),
		func(found *admissionv1.ValidatingWebhookConfiguration) (hooks []hook) {
			for _, w := range found.Webhooks {
				hooks = append(hooks, newHook(w.Name, w.ClientConfig))
			}
			return hooks
		})
	return append(mutating, validating...), err
}

// configurationAPI is the common part of the clients of both kinds.
type configurationAPI[T metav1.Object] interface {
	Get(context.Context, string, metav1.GetOptions) (T, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
}

// readEach reads the configurations of one kind that exist.
func readEach[T metav1.Object](ctx context.Context, kind string, names []string,
	api configurationAPI[T], hooks func(T) []hook) ([]configuration, error) {
	var all []configuration
	for _, name := range names {
		found, err := api.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s webhook configuration %s: %w", kind, name, err)
		}
		one := configuration{name: name, version: found.GetResourceVersion(), hooks: hooks(found)}
		one.patch = func(ctx context.Context, patch []byte) error {
			_, err := api.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{})
			return err
		}
		all = append(all, one)
	}
	return all, nil
}

// newHook finds the name under which the API server verifies the server.
func newHook(name string, config admissionv1.WebhookClientConfig) hook {
	h := hook{name: name, bundle: config.CABundle}
	if s := config.Service; s != nil {
		h.host = s.Name + "." + s.Namespace + ".svc"
	} else if config.URL != nil {
		if u, err := url.Parse(*config.URL); err == nil {
			h.host = u.Hostname()
		}
	}
	return h
}

// heal puts bundle into every entry that had another when the configurations were read, and returns how many did. A
// configuration that has changed since is left as it is, with errConflict.
func (c Configurations) heal(ctx context.Context, live []configuration, bundle []byte) (healed int, err error) {
	for _, one := range live {
		patch, n, err := bundlePatch(one, bundle)
		if err != nil {
			return healed, err
		}
		if n == 0 {
			continue
		}
		err = one.patch(ctx, patch)
		if apierrors.IsConflict(err) {
			err = fmt.Errorf("%w: %w", errConflict, err)
		}
		if err != nil {
			return healed, fmt.Errorf("patch caBundle of %s: %w", one.name, err)
		}
		healed += n
	}
	return healed, nil
}

// bundlePatch is a JSON patch that touches nothing but caBundle, and fails unless the configuration is as it was
// read. n is how many entries it changes.
func bundlePatch(one configuration, bundle []byte) (patch []byte, n int, err error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	ops := []operation{{"add", "/metadata/resourceVersion", one.version}}
	for i, h := range one.hooks {
		if bytes.Equal(h.bundle, bundle) {
			continue
		}
		ops = append(ops, operation{"add", "/webhooks/" + strconv.Itoa(i) + "/clientConfig/caBundle", bundle})
		n++
	}
	patch, err = json.Marshal(ops)
	return patch, n, err
}
