package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Program returns the files that a program of this machine needs in an image, keyed by their path there:
// itself at dst, its dynamic loader, and the shared libraries that it and they name. A static program
// needs only itself. Libraries that are opened at run time, such as the driver's, are not among them.
// Roots are folders with unpacked packages, whose libraries are taken before the machine's.
func Program(dst, src string, roots ...string) (map[string]string, error) {
	files := map[string]string{dst: src}
	return files, addNeeded(files, src, append(roots, "/"))
}

// addNeeded adds the libraries that the ELF file at path needs.
func addNeeded(files map[string]string, path string, roots []string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("read program %s: %w", path, err)
	}
	defer f.Close()
	names, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("read libraries of %s: %w", path, err)
	}
	if loader := interpreter(f); loader != "" {
		names = append(names, loader)
	}
	for _, name := range names {
		root, lib, err := findLibrary(name, roots)
		if err != nil {
			return fmt.Errorf("pack %s: %w", path, err)
		}
		if _, ok := files[lib]; ok {
			continue
		}
		files[lib] = filepath.Join(root, lib)
		if err := addNeeded(files, files[lib], roots); err != nil {
			return err
		}
	}
	return nil
}

// interpreter returns the path of the dynamic loader of f, or "".
func interpreter(f *elf.File) string {
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		text := make([]byte, p.Filesz)
		if _, err := p.ReadAt(text, 0); err == nil {
			return strings.TrimRight(string(text), "\x00")
		}
	}
	return ""
}

// libraryFolders returns where the dynamic loaders of common distributions look.
func libraryFolders() []string {
	return []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
		"/lib64", "/usr/lib64", "/lib", "/usr/lib"}
}

// findLibrary returns the path of a library below the first of the roots that has it. The path is name itself if that is one.
func findLibrary(name string, roots []string) (root, path string, err error) {
	folders := libraryFolders()
	if filepath.IsAbs(name) {
		folders = []string{"/"}
	}
	for _, root := range roots {
		for _, folder := range folders {
			path := filepath.Join(folder, name)
			if _, err := os.Stat(filepath.Join(root, path)); err == nil {
				return root, path, nil
			} else if !errors.Is(err, os.ErrNotExist) {
				return "", "", fmt.Errorf("look for library %s: %w", name, err)
			}
		}
	}
	return "", "", fmt.Errorf("library %s is in none of %s", name, strings.Join(folders, ", "))
}
