package frameworks

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/gpuslice/gpuslice/policies/internal/nvidia"
	"github.com/gpuslice/gpuslice/policies/internal/shim"
)

// shim lets the shim cap releases that read no limit from their environment, if policy has it on.
func (e *evaluation) shim(choice choice) {
	p := choice.profile
	mode := e.in.Switches[p.Name].ShimMode()
	if p.Shim == nil || e.out.Capped || e.uncaps != "" || mode == shim.Off || choice.version.known() && !p.shim.holds(choice.version) {
		return
	}
	way, err := e.shimWay(mode)
	switch {
	case err == nil:
	case mode != shim.Variable:
		e.reasons = append([]string{"no shim: " + err.Error()}, e.reasons...)
		return
	case errors.Is(err, shim.ErrNoVariable) && choice.version.known() && len(e.reasons) > 0:
		e.reasons[0] += "; " + err.Error()
		return
	default: // nobody requested the shim
		return
	}
	limit := strconv.FormatInt(e.amounts.budget, 10)
	e.out.Shim = way
	e.out.Env = append(e.out.Env, Env{Name: nvidia.EnvAllocatorBytes, Value: limit, Cap: choice.version.known()})
	if !choice.version.known() {
		e.reasons = append(
			[]string{fmt.Sprintf("the shim caps %s from %s on, and the version is not known; the label gpuslice.dev/framework can say it",
				p.Title, p.shim.from)}, e.reasons...)
		return
	}
	e.cap(fmt.Sprintf("%s=%s, by the shim (%s)", nvidia.EnvAllocatorBytes, limit, choice.people()))
}

// shimWay is how the container loads the shim, or why it cannot or need not.
func (e *evaluation) shimWay(mode string) (string, error) {
	_, err := e.amounts.budgetBytes()
	if part := e.amounts.below(e.amounts.budget); err == nil && (errors.Is(part, errSliced) || errors.Is(part, errWhole)) {
		err = part
	}
	switch {
	case err != nil:
		return "", err
	case e.in.NoShim != "":
		return "", errors.New(e.in.NoShim)
	case e.in.GPUs > 1:
		return "", errors.New("it caps one GPU of a process, and the container has several")
	}
	return shim.WayOf(e.in.Pod, e.in.Container, e.found.words, mode)
}
