package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestEditStandIn(t *testing.T) {
	t.Parallel()
	const config = `{"process":{"args":[%s]},"root":{"path":"rootfs"}}`
	for name, tt := range map[string]struct{ image, args, want string }{
		"a program that the image lacks is replaced":           {"/standin", `"python","train.py"`, `"/standin","python","train.py"`},
		"a path that the image lacks is replaced":              {"/standin", `"/bin/sh","-c","x"`, `"/standin","/bin/sh","-c","x"`},
		"the stand-in itself is not replaced":                  {"/standin", `"/standin","x"`, `"/standin","x"`},
		"in an image without the stand-in nothing is replaced": {"/other", `"python"`, `"python"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := settings{StandIn: "/standin", bundle: t.TempDir()}
			root := filepath.Join(s.bundle, "rootfs")
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, tt.image), nil, 0o755); err != nil {
				t.Fatal(err)
			}
			got, err := edit(fmt.Appendf(nil, config, tt.args), s)
			if err != nil {
				t.Fatal(err)
			}
			process := decode(t, string(got)).(map[string]any)["process"].(map[string]any)
			args, err := json.Marshal(process["args"])
			if err != nil {
				t.Fatal(err)
			}
			if want := "[" + tt.want + "]"; string(args) != want {
				t.Errorf("args are %s, want %s", args, want)
			}
		})
	}
}

func TestAboutContainer(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	served := corev1.Container{Name: "served", Ports: []corev1.ContainerPort{{ContainerPort: 8000},
		{ContainerPort: 53, Protocol: corev1.ProtocolUDP}, {ContainerPort: 9000, Protocol: corev1.ProtocolTCP}}}
	spec := corev1.PodSpec{
		InitContainers: []corev1.Container{{Name: "before"}, {Name: "beside", RestartPolicy: &always}},
		Containers:     []corev1.Container{served, {Name: "quiet"}},
	}
	for _, tt := range []struct {
		policy                 corev1.RestartPolicy
		container, ports, ends string
	}{
		{corev1.RestartPolicyAlways, "before", "", "init"},
		{corev1.RestartPolicyAlways, "beside", "", ""},
		{corev1.RestartPolicyAlways, "served", "8000,9000", ""},
		{corev1.RestartPolicyNever, "before", "", "init"},
		{corev1.RestartPolicyNever, "beside", "", ""},
		{corev1.RestartPolicyNever, "quiet", "", "job"},
		{corev1.RestartPolicyOnFailure, "served", "8000,9000", "job"},
		{corev1.RestartPolicyNever, "other", "", ""},
	} {
		spec.RestartPolicy = tt.policy
		if ports, ends := about(spec, tt.container); ports != tt.ports || ends != tt.ends {
			t.Errorf("%s in a pod with restartPolicy %s: ports %q, ends %q", tt.container, tt.policy, ports, ends)
		}
	}
}
