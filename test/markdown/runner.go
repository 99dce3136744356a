package markdown

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Runner runs the commands of blocks.
type Runner struct {
	Dir string
	Env []string
	// Words replaces the page's placeholders: old and new, in turn.
	Words []string
}

// Run runs the block's commands in one shell, which ends with the first that fails. It returns what they print.
func (r *Runner) Run(ctx context.Context, b Block) (string, error) {
	commands, _ := b.Commands()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", strings.NewReplacer(r.Words...).Replace(commands))
	cmd.Dir, cmd.Env = r.Dir, r.Env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w:\n%s\nprints\n%s", b.Where(), err, commands, out)
	}
	return string(out), nil
}
