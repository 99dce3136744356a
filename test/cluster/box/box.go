package box

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/gpuslice/gpuslice/test/cluster/internal/run"
)

// ErrUnsupported is wrapped by the errors of Run that say why this machine cannot have a box.
var ErrUnsupported = errors.New("no Kubernetes node can run here")

// Addresses inside every box.
const (
	// NodeIP is the address of the node's own interface.
	NodeIP = "10.250.0.1"
	// ServiceIP is on the loopback interface, for an API server that pods reach without kube-proxy.
	ServiceIP = "10.96.0.1"
)

// Box holds the functions for outside and inside.
type Box struct {
	// Prepare runs first and outside, with network and without a time limit: builds belong here. It may
	// leave files in dir.
	Prepare func(ctx context.Context, dir string) error
	// Inside runs in the box, where dir has the same path. Its result is the exit status.
	Inside func(dir string) int
	// Ended, which may be nil, runs last and outside, with the exit status, whatever has become of Inside.
	// It is the last to see dir.
	Ended func(dir string, code int) error
}

// The program finds in these variables that it has been started by itself.
const (
	stageVariable = "GPUSLICE_BOX_STAGE"
	dirVariable   = "GPUSLICE_BOX_DIR"

	stageGroups = "groups" // process 1, waits to be put into its cgroups
	stageInit   = "init"   // process 1, sets the box up
	stageInside = "inside" // the program proper
)

// Run must be the first thing that main or TestMain does, since all that came before is done twice. It
// returns the exit status of Inside, whichever of the processes it is called in.
func (b Box) Run(ctx context.Context) (int, error) {
	switch os.Getenv(stageVariable) {
	case stageGroups:
		return 1, enterGroups()
	case stageInit:
		return initialise(os.Getenv(dirVariable))
	case stageInside:
		return b.Inside(os.Getenv(dirVariable)), nil
	default:
		return b.outside(ctx)
	}
}

// Dir returns the folder of the box that this process is in, and "" outside.
func Dir() string {
	if os.Getenv(stageVariable) != stageInside {
		return ""
	}
	return os.Getenv(dirVariable)
}

// folderKind names the folders of boxes.
const folderKind = "box"

// Sweep removes remains of boxes whose processes were killed.
func Sweep() { run.Sweep(folderKind, removeGroups) }

// outside makes the box, waits for its end and removes it.
func (b Box) outside(ctx context.Context) (_ int, err error) {
	if err := Preflight(); err != nil {
		return 1, err
	}
	Sweep()
	folder, err := run.NewFolder(folderKind)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	for _, hidden := range []string{"/run/", "/var/lib/", "/var/log/"} {
		if strings.HasPrefix(folder.Path, hidden) {
			return 1, fmt.Errorf("%w: the temporary folder lies below %s, which is another one in there: set TMPDIR", ErrUnsupported, hidden)
		}
	}
	if err := b.Prepare(ctx, folder.Path); err != nil {
		return 1, err
	}
	groups, err := makeGroups(folder.Path)
	defer func() { err = errors.Join(err, removeGroups(folder.Path)) }()
	if err != nil {
		return 1, err
	}
	exe, err := os.Executable()
	if err != nil {
		return 1, fmt.Errorf("find own program: %w", err)
	}
	cmd := exec.Command(exe)
	cmd.Args = os.Args
	cmd.Env = append(os.Environ(), stageVariable+"="+stageGroups, dirVariable+"="+folder.Path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	code, err := launch(cmd, groups, folder.Path)
	if err == nil && b.Ended != nil {
		err = b.Ended(folder.Path, code)
	}
	return code, err
}
