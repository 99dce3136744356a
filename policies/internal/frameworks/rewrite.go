package frameworks

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/guard/shorten"
	"github.com/gpuslice/gpuslice/policies/internal/commandline"
)

// rewrite adds a flag at the end of the arguments: of several of one name the last counts, so the author's words stay as
// they are.
func (e *evaluation) rewrite(p *compiled, a Argument, most string) {
	word := a.Flag + "=" + most
	e.out.Args = append(e.out.Args, word)
	if given, found := commandline.Flag(e.found.words, a.Flag); found {
		e.warnOnce(fmt.Sprintf("%s=%s does not fit %s of %s; %s is added behind it, and counts",
			a.Flag, shorten.Text(given, maxQuoted), size(e.amounts.perProcess), size(e.amounts.total), word))
	} else {
		e.out.Notes = append(e.out.Notes, fmt.Sprintf("%s is added to its arguments: %s", word, a.Default))
	}
	if a.Cap {
		e.cap(fmt.Sprintf("%s (%s)", word, p.Title))
		return
	}
	e.reasons = append(e.reasons, word+" does not bound the whole process")
}

// unseen is the reason why a flag at the end of the container's arguments might not reach one of the commands, or "".
func unseen(c *corev1.Container, commands []string) string {
	if len(c.Command)+len(c.Args) == 0 {
		return "the whole command line is the image's own"
	}
	words := commandline.Plain(c)
	for i := range words {
		if !slices.ContainsFunc(commands, func(command string) bool {
			fields := strings.Fields(command)
			return len(words)-i >= len(fields) && commandline.RunsAt(words[i:], fields)
		}) {
			continue
		}
		if slices.ContainsFunc(words[i:], func(w commandline.Word) bool { return w.Text == "--" }) {
			return "what follows -- in its arguments is no flag"
		}
		return ""
	}
	// Arguments that begin with a flag are for the server that the image itself starts.
	if len(c.Command) == 0 && strings.HasPrefix(c.Args[0], "--") && !slices.Contains(c.Args, "--") {
		return ""
	}
	return "its command line is a script, or not that of a server that takes the flag"
}
