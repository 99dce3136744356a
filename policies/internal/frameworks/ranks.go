package frameworks

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/gpuslice/gpuslice/policies/internal/commandline"
)

// RanksBeyond describes processes that a container starts on more GPUs than it has; "": as far as its words show, it starts none.
func RanksBeyond(c *corev1.Container, gpus int64) string {
	if len(c.Command)+len(c.Args) == 0 {
		return ""
	}
	e := evaluation{in: &Input{Container: c}, found: search{image: parseImage(c.Image), words: commandline.Split(c)}}
	p := recognise(table, nil, e.found)
	if p == nil || p.Ranks == nil {
		return ""
	}
	made, found := e.made(p, p.Ranks.Settings)
	n, err := strconv.ParseInt(made.value, 10, 32)
	if _, unless := e.made(p, p.Ranks.Unless); !found || unless || !made.readable || err != nil || n <= gpus {
		return ""
	}
	has := "one GPU"
	if gpus > 1 {
		has = fmt.Sprintf("%d GPUs", gpus)
	}
	return fmt.Sprintf("%s=%d %s, and the container has %s; write %s=%d", made.name, n, p.Ranks.Says, has, made.name, gpus)
}
