package frameworks

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies/internal/commandline"
)

// pid1Document lists images whose entry point must be PID 1, and such entry points by name.
type pid1Document struct {
	Description string   `json:"description"`
	Sources     []string `json:"sources,omitempty"`
	Images      []string `json:"images"`
	Commands    []string `json:"commands"`
	// Containers are names of containers that other systems signal by a command that they start in them.
	Containers []string `json:"containers,omitempty"`
}

// initTable is a compiled Inits.
type initTable struct {
	images     []pattern
	commands   []string
	containers []string
}

func parseInits(text []byte) (initTable, error) {
	var doc pid1Document
	if err := decode(text, &doc); err != nil {
		return initTable{}, err
	}
	var problems problems
	inits := initTable{images: problems.patterns("images", doc.Images), commands: doc.Commands, containers: doc.Containers}
	for i, command := range doc.Commands {
		if command == "" || command[0] != '/' {
			problems.add(fmt.Sprintf("commands[%d]", i), "%q is no absolute path", command)
		}
	}
	return inits, errors.Join(problems...)
}

// NeedsPID1 reports whether the container's image has an init of its own that dies when it is not PID 1. Images that match
// one of policy's patterns have one, too. A command of the pod's own replaces the image's entry point, and its init with it.
func NeedsPID1(c *corev1.Container, policy []string) bool {
	if len(c.Command) > 0 {
		return slices.Contains(pid1.commands, c.Command[0])
	}
	image := parseImage(c.Image)
	return anyMatches(pid1.images, image) || Switch{Images: policy}.names(image)
}

// UsesFirstProcess returns what of a container relies on the numbers of its own processes, and "" where nothing is known to: its
// command, hooks and probes, and what other systems run in it.
func UsesFirstProcess(c *corev1.Container) string {
	if slices.Contains(pid1.containers, c.Name) {
		return "what runs it signals process 1"
	}
	commands := [][]string{slices.Concat(c.Command, c.Args)}
	if c.Lifecycle != nil {
		for _, hook := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if hook != nil && hook.Exec != nil {
				commands = append(commands, hook.Exec.Command)
			}
		}
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil && probe.Exec != nil {
			commands = append(commands, probe.Exec.Command)
		}
	}
	for _, command := range commands {
		if found := commandline.UsesFirstProcess(command); found != "" {
			return fmt.Sprintf("it says %q", shorten.Text(found, maxQuoted))
		}
	}
	return ""
}
