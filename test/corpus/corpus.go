package corpus

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// Pod is one pod of the corpus as it was written.
type Pod struct {
	Name string // the file's name
	YAML []byte
}

// All returns the pods, sorted by name.
func All() ([]Pod, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list the corpus: %w", err)
	}
	all := make([]Pod, len(names))
	for i, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read pod %s of the corpus: %w", name, err)
		}
		all[i] = Pod{Name: name, YAML: text}
	}
	return all, nil
}
