package policies

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ProfileInits lists images whose entry point must be PID 1, and such entry points by name.
type ProfileInits struct {
	Description string   `json:"description"`
	Sources     []string `json:"sources,omitempty"`
	Images      []string `json:"images"`
	Commands    []string `json:"commands"`
}

// profileInits is a compiled ProfileInits.
type profileInits struct {
	images   []profilePattern
	commands []string
}

func profileParseInits(text []byte) (profileInits, error) {
	var doc ProfileInits
	if err := profileDecode(text, &doc); err != nil {
		return profileInits{}, err
	}
	var problems profileProblems
	inits := profileInits{images: problems.patterns("images", doc.Images), commands: doc.Commands}
	for i, command := range doc.Commands {
		if command == "" || command[0] != '/' {
			problems.add(fmt.Sprintf("commands[%d]", i), "%q is no absolute path", command)
		}
	}
	return inits, errors.Join(problems...)
}

// needs says whether the container starts an init that dies in a shared PID namespace. A command of the pod's own replaces the
// image's entry point, and its init with it.
func (p profileInits) needs(c *corev1.Container, image profileImage) bool {
	if len(c.Command) > 0 {
		return slices.Contains(p.commands, c.Command[0])
	}
	return profileAnyMatches(p.images, image)
}

// profileInitsNeeded reports whether the container's image has an init of its own that dies when it is not PID 1.
func profileInitsNeeded(c *corev1.Container) bool {
	return profilePID1.needs(c, profileParseImage(c.Image))
}
