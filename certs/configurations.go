package certs

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

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
	name  string
	hooks []hook
	patch func(ctx context.Context, patch []byte) error
}

// hook is one entry of it: how the API server calls, and whom it trusts.
type hook struct {
	name, host string
	bundle     []byte
}

// read returns the configurations that exist.
func (c Configurations) read(ctx context.Context) ([]configuration, error) {
	var out []configuration
	for kind, names := range map[string][]string{"mutating": c.Mutating, "validating": c.Validating} {
		for _, name := range names {
			get := c.mutating
			if kind == "validating" {
				get = c.validating
			}
			one, err := get(ctx, name)
			if apierrors.IsNotFound(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s webhook configuration %s: %w: %w", kind, name, errUnread, err)
			}
			out = append(out, one)
		}
	}
	return out, nil
}

func (c Configurations) mutating(ctx context.Context, name string) (configuration, error) {
	api := c.Client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	found, err := api.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return configuration{}, err
	}
	one := configuration{name: name, patch: func(ctx context.Context, patch []byte) error {
		_, err := api.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{})
		return err
	}}
	for _, w := range found.Webhooks {
		one.hooks = append(one.hooks, newHook(w.Name, w.ClientConfig))
	}
	return one, nil
}

func (c Configurations) validating(ctx context.Context, name string) (configuration, error) {
	api := c.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	found, err := api.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return configuration{}, err
	}
	one := configuration{name: name, patch: func(ctx context.Context, patch []byte) error {
		_, err := api.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{})
		return err
	}}
	for _, w := range found.Webhooks {
		one.hooks = append(one.hooks, newHook(w.Name, w.ClientConfig))
	}
	return one, nil
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

// heal puts bundle into every entry that holds another, and returns the configurations as they are then.
func (c Configurations) heal(ctx context.Context, bundle []byte) ([]configuration, int, error) {
	live, err := c.read(ctx)
	if err != nil {
		return nil, 0, err
	}
	healed := 0
	for _, one := range live {
		patch, n, err := bundlePatch(one.hooks, bundle)
		if err != nil {
			return nil, healed, err
		}
		if n == 0 {
			continue
		}
		if err := one.patch(ctx, patch); err != nil {
			return nil, healed, fmt.Errorf("patch caBundle of %s: %w", one.name, err)
		}
		healed += n
	}
	if healed > 0 {
		live, err = c.read(ctx)
	}
	return live, healed, err
}

// bundlePatch is a JSON patch that touches nothing but caBundle, and does so only while the entries stand where they
// were read. n says how many entries it changes.
func bundlePatch(hooks []hook, bundle []byte) (patch []byte, n int, err error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	var ops []operation
	for i, h := range hooks {
		if bytes.Equal(h.bundle, bundle) {
			continue
		}
		at := "/webhooks/" + strconv.Itoa(i)
		ops = append(ops, operation{"test", at + "/name", h.name}, operation{"add", at + "/clientConfig/caBundle", bundle})
		n++
	}
	patch, err = json.Marshal(ops)
	return patch, n, err
}

// verify says which entries would not accept the leaf: nil when all do.
func verify(live []configuration, leaf *x509.Certificate, now time.Time) error {
	var errs []error
	for _, one := range live {
		for _, h := range one.hooks {
			if err := trusted(leaf, h.bundle, h.host, now); err != nil {
				errs = append(errs, fmt.Errorf("webhook %s of %s would not accept the certificate: %w", h.name, one.name, err))
			}
		}
	}
	return errors.Join(errs...)
}
