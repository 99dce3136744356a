package recipe

import (
	"bytes"
	"debug/elf"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/gpuslice/gpuslice/deploy/images/oci"
)

// runs returns an error where a program could not be started with these libraries: it names one that is missing, or was
// compiled against a newer C library. Without this the guard would fail in every pod it is injected into.
func runs(program []byte, libraries map[string]oci.File) error {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("read program: %w", err)
	}
	defined := map[string][]string{}
	for at, l := range libraries {
		if versions, err := definedVersions(l); err == nil {
			defined[path.Base(at)] = versions
		}
	}
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return fmt.Errorf("read symbols of program: %w", err)
	}
	var lacks []string
	for _, s := range symbols {
		if s.Library == "" {
			continue
		}
		versions, ok := defined[s.Library]
		if !ok {
			return fmt.Errorf("the program needs %s, which its image does not have: it has %s",
				s.Library, strings.Join(slices.Sorted(maps.Keys(defined)), ", "))
		}
		if !slices.Contains(versions, s.Version) {
			lacks = append(lacks, s.Name+"@"+s.Version)
		}
	}
	if len(lacks) > 0 {
		return fmt.Errorf("the program needs a newer C library than its image has (%s): compile it on a system whose C library is not newer than that of deploy/images/debian/libc6.yaml",
			strings.Join(lacks, ", "))
	}
	return nil
}

// definedVersions returns those of the symbols that a library offers.
func definedVersions(f oci.File) ([]string, error) {
	lib, err := elf.NewFile(bytes.NewReader(f.Content))
	if err != nil {
		return nil, err
	}
	versions, err := lib.DynamicVersions()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, v := range versions {
		names = append(names, v.Name)
	}
	return names, nil
}
