package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/deploy/images/debian"
	"github.com/gpuslice/gpuslice/deploy/images/recipe"
)

func newLockCommand() *cobra.Command {
	var release string
	cmd := &cobra.Command{
		Use:   "lock",
		Short: "Take the newest C library that apt-get offers into libc6.yaml",
		Long: `Rewrite deploy/images/debian/libc6.yaml, with the newest libc6 that this machine's apt-get offers. Do that when
Debian has updated the C library, on the release of Debian that the file names.`,
		Example: `  go run ./deploy/images lock`,
		Args:    usage(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return lock(cmd, release) },
	}
	cmd.Flags().StringVar(&release, "release", "", "release of Debian that this machine's apt-get offers (default: as in the file)")
	return cmd
}

func lock(cmd *cobra.Command, release string) error {
	l, err := debian.Locked()
	if err != nil {
		return err
	}
	if release != "" {
		l.Release = release
	}
	cache, err := recipe.Cache()
	if err != nil {
		return err
	}
	store := debian.Store{Cache: filepath.Join(cache, "debian"), Say: say(cmd)}
	for i, arch := range debian.Architectures() {
		say(cmd)("fetching libc6 for %s", arch)
		p, err := store.Latest(cmd.Context(), arch)
		if err != nil {
			return err
		}
		if i > 0 && p.Version != l.Version {
			return fmt.Errorf("libc6 is %s for %s and %s for others: try again later", p.Version, arch, l.Version)
		}
		l.Version, l.SHA256[arch] = p.Version, p.SHA256
	}
	root, err := recipe.Checkout()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "deploy", "images", "debian", "libc6.yaml"), []byte(l.String()), 0o644); err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	fmt.Fprintln(cmd.OutOrStdout(), "libc6", l.Version)
	return nil
}
