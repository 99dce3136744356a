package shim

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/commandline"
)

func TestIgnoresEnvironment(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"python train.py":                        false,
		"python -I train.py":                     true,
		"/opt/conda/bin/python3.11 -uE -m train": true,
		"python3 -W ignore -S train.py":          true,
		"python -u -m torch.distributed.run -E":  false,
		"python -mIES":                           false,
		"python -c -I":                           false,
		"python -X dev -I x.py":                  true,
		"python train.py -I":                     false,
		"grep -E x":                              false,
		"cd /app && exec python -I x.py":         true,
		"python x.py; grep -E y z":               false,
		"gpuslice-exec python -I x.py":           true,
		"python -O train.py -E":                  false,
		"timeout 1h python -I x.py":              true,
		"timeout 1h python x.py -I":              false,
		"conda run -n e python -I x.py":          true,
		"numactl -N 0 /usr/bin/python3 -uS x.py": true,
		"ls /opt/python-app -S":                  false,
	} {
		if got := ignoresEnvironment(commandline.Split(&corev1.Container{Command: []string{"sh", "-c", command}})); got != want {
			t.Errorf("%s: %v", command, got)
		}
	}
}

// TestWayOf is about what a container does with the variable: its command must mean what it meant, and the shim must be there.
func TestWayOf(t *testing.T) {
	t.Parallel()
	const uses, replaces, clears = "the container itself uses the value of PYTHONPATH",
		"the command sets or removes PYTHONPATH", "the command clears the environment"
	script := func(text string) corev1.Container { return corev1.Container{Command: []string{"sh", "-c", text}} }
	command := func(words ...string) corev1.Container { return corev1.Container{Command: words} }
	with := func(c corev1.Container, pairs ...string) corev1.Container {
		for _, pair := range pairs {
			name, value, _ := strings.Cut(pair, "=")
			c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
		}
		return c
	}
	for name, tt := range map[string]struct {
		c   corev1.Container
		way string
		why string
	}{
		"a command":                           {command("python", "x.py"), ByCommand, ""},
		"the value in the command":            {with(command("python", "$(PYTHONPATH)/train.py"), "PYTHONPATH=/app"), "", uses},
		"the value in args":                   {with(corev1.Container{Args: []string{"$(PYTHONPATH)/train.py"}}, "PYTHONPATH=/app"), "", uses},
		"the value in another variable":       {with(command("python"), "PYTHONPATH=/app", "CONFIG=$(PYTHONPATH)/c.yaml"), "", uses},
		"another variable's value":            {with(command("python"), "PYTHONPATH=/app", "CONFIG=$(MY_PYTHONPATH)/c.yaml"), ByVariable, ""},
		"an earlier value of its own":         {with(command("python"), "PYTHONPATH=/app", "PYTHONPATH=$(PYTHONPATH):/b"), ByCommand, ""},
		"the value in a script":               {script("python $PYTHONPATH/train.py"), "", uses},
		"the value in a script, in braces":    {script("ls ${PYTHONPATH%%:*} && python x.py"), "", uses},
		"the value in another assignment":     {script("APP=$PYTHONPATH python x.py"), "", uses},
		"another name in a script":            {script("python $PYTHONPATHS $MY_PYTHONPATH"), ByCommand, ""},
		"set":                                 {script("PYTHONPATH=/app python x.py"), "", replaces},
		"set, where the variable is the way":  {with(script("PYTHONPATH=/app python x.py"), "PYTHONPATH=/lib"), "", replaces},
		"exported":                            {script("export PYTHONPATH=/app; python x.py"), "", replaces},
		"exported as it is":                   {script("export PYTHONPATH; python x.py"), ByCommand, ""},
		"unset":                               {script("unset PYTHONPATH && python x.py"), "", replaces},
		"kept":                                {script("PYTHONPATH=/app:$PYTHONPATH python x.py"), ByCommand, ""},
		"kept, exported":                      {script(`export PYTHONPATH="/app${PYTHONPATH:+:$PYTHONPATH}"; python x.py`), ByCommand, ""},
		"kept, in braces":                     {script("export PYTHONPATH=${PYTHONPATH}:/app; python x.py"), ByCommand, ""},
		"appended to":                         {script("export PYTHONPATH+=:/app; python x.py"), ByCommand, ""},
		"kept, and used":                      {script("PYTHONPATH=/app:$PYTHONPATH python $PYTHONPATH/x.py"), "", uses},
		"kept by the kubelet":                 {script("PYTHONPATH=/app:$(PYTHONPATH) python x.py"), "", uses},
		"in a script of a script":             {script("exec bash -c 'PYTHONPATH=/app python $PYTHONPATH/x.py'"), "", replaces},
		"where no shell reads the assignment": {command("env", "PYTHONPATH=/app:$PYTHONPATH", "python", "x.py"), "", replaces},
		"env -u":                              {command("env", "-u", "PYTHONPATH", "python", "x.py"), "", replaces},
		"env -uNAME":                          {command("env", "-uPYTHONPATH", "python", "x.py"), "", replaces},
		"env --unset":                         {command("env", "--unset=PYTHONPATH", "python", "x.py"), "", replaces},
		"env -i":                              {command("env", "-i", "python", "x.py"), "", clears},
		"env -i behind others":                {script("timeout 1h /usr/bin/env -C /app A=b -i python x.py"), "", clears},
		"env -":                               {command("env", "-", "python", "x.py"), "", clears},
		"env --ignore-environment":            {command("env", "--ignore-environment", "python", "x.py"), "", clears},
		"env of another variable":             {command("env", "-u", "HOME", "A=b", "python", "-i", "x.py"), ByCommand, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkWay(t, &corev1.Pod{}, &tt.c, tt.way, tt.why)
		})
	}
}

func TestWayOfUnderALocalProfile(t *testing.T) {
	t.Parallel()
	armor := func(kind corev1.AppArmorProfileType) *corev1.AppArmorProfile {
		return &corev1.AppArmorProfile{Type: kind}
	}
	seccomp := func(kind corev1.SeccompProfileType) *corev1.SeccompProfile { return &corev1.SeccompProfile{Type: kind} }
	annotated := func(container, value string) corev1.Pod {
		pod := corev1.Pod{}
		pod.Annotations = map[string]string{corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix + container: value}
		return pod
	}
	const ofArmor, ofSeccomp = "the AppArmor profile of the container is of the node", "the seccomp profile of the container is of the node"
	for name, tt := range map[string]struct {
		pod corev1.Pod
		own *corev1.SecurityContext
		why string
	}{
		"none": {},
		"default": {
			pod: inPod(&corev1.PodSecurityContext{AppArmorProfile: armor("RuntimeDefault"), SeccompProfile: seccomp("RuntimeDefault")}),
		},
		"AppArmor of the pod":       {pod: inPod(&corev1.PodSecurityContext{AppArmorProfile: armor("Localhost")}), why: ofArmor},
		"AppArmor of the container": {own: &corev1.SecurityContext{AppArmorProfile: armor("Localhost")}, why: ofArmor},
		"AppArmor of the pod, not the container": {pod: inPod(&corev1.PodSecurityContext{AppArmorProfile: armor("Localhost")}),
			own: &corev1.SecurityContext{AppArmorProfile: armor("Unconfined")}},
		"AppArmor of an annotation":                  {pod: annotated("c", "localhost/corp"), why: ofArmor},
		"AppArmor of an annotation, the default":     {pod: annotated("c", "runtime/default")},
		"AppArmor of another container's annotation": {pod: annotated("d", "localhost/corp")},
		"seccomp of the pod": {pod: inPod(&corev1.PodSecurityContext{SeccompProfile: seccomp("Localhost")}),
			why: ofSeccomp},
		"seccomp of the container": {own: &corev1.SecurityContext{SeccompProfile: seccomp("Localhost")}, why: ofSeccomp},
		"seccomp of the pod, not the container": {pod: inPod(&corev1.PodSecurityContext{SeccompProfile: seccomp("Localhost")}),
			own: &corev1.SecurityContext{SeccompProfile: seccomp("RuntimeDefault")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &corev1.Container{Name: "c", Command: []string{"python", "x.py"}, SecurityContext: tt.own}
			way := ByCommand
			if tt.why != "" {
				way = ""
			}
			checkWay(t, &tt.pod, c, way, tt.why)
			c.Env = []corev1.EnvVar{{Name: "PYTHONPATH", Value: "/app"}}
			checkWay(t, &tt.pod, c, ByVariable, "") // starts nothing else
		})
	}
}

func inPod(s *corev1.PodSecurityContext) corev1.Pod {
	return corev1.Pod{Spec: corev1.PodSpec{SecurityContext: s}}
}

func checkWay(t *testing.T, pod *corev1.Pod, c *corev1.Container, way, why string) {
	t.Helper()
	got, err := WayOf(pod, c, commandline.Split(c), On)
	if got != way || (err != nil) != (why != "") || err != nil && !strings.Contains(err.Error(), why) {
		t.Errorf("way %q, error %v; want %q, %q", got, err, way, why)
	}
}

// TestWayOfByFile is about containers whose image alone says what runs, and what PYTHONPATH is.
func TestWayOfByFile(t *testing.T) {
	t.Parallel()
	localhost := &corev1.SecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost}}
	for name, tt := range map[string]struct {
		c    corev1.Container
		mode string
		way  string
		why  string
	}{
		"nothing":                 {corev1.Container{}, EnvFiles, ByFile, ""},
		"arguments":               {corev1.Container{Args: []string{"-u", "train.py", "-I"}}, EnvFiles, ByFile, ""},
		"arguments, Python's own": {corev1.Container{Args: []string{"-uI", "train.py"}}, EnvFiles, "", "the command starts Python with -I"},
		"a program in arguments":  {corev1.Container{Args: []string{"python", "-S", "x.py"}}, EnvFiles, "", "the command starts Python with -I"},
		"without such files":      {corev1.Container{}, On, "", "the image may set PYTHONPATH"},
		"a command":               {corev1.Container{Command: []string{"python"}}, EnvFiles, ByCommand, ""},
		"a value":                 {corev1.Container{Env: []corev1.EnvVar{{Name: "PYTHONPATH"}}}, EnvFiles, ByVariable, ""},
		"a value from elsewhere": {corev1.Container{Env: []corev1.EnvVar{{Name: "PYTHONPATH", ValueFrom: new(corev1.EnvVarSource)}}},
			EnvFiles, "", "known at run time only"},
		"variables from elsewhere": {corev1.Container{EnvFrom: []corev1.EnvFromSource{{}}}, EnvFiles, "", "known at run time only"},
		"under a local profile": {corev1.Container{SecurityContext: localhost},
			EnvFiles, "", "the seccomp profile of the container is of the node"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := WayOf(&corev1.Pod{}, &tt.c, commandline.Split(&tt.c), tt.mode)
			if got != tt.way || (err != nil) != (tt.why != "") || err != nil && !strings.Contains(err.Error(), tt.why) {
				t.Errorf("way %q, error %v; want %q, %q", got, err, tt.way, tt.why)
			}
		})
	}
}

// TestRecorderNumber holds names to what Recorder writes: one that only looks like it is the author's own container.
func TestRecorderNumber(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"gpuslice-record-0": 0, "gpuslice-record-12": 12,
		"gpuslice-record-01": -1, "gpuslice-record-+1": -1,
		"gpuslice-record--1": -1, "gpuslice-record-": -1, "gpuslice-record-x": -1, "1": -1} {
		if got := RecorderNumber(name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
