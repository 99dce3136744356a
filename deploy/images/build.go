package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/deploy/images/recipe"
)

// buildFlags are the flags beside the options themselves.
type buildFlags struct {
	platforms, images []string
	options           recipe.Options
}

func newBuildCommand() *cobra.Command {
	f := buildFlags{}
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Build the images into a folder",
		Long: `Build the images into a folder: NAME is an OCI layout, NAME.tar the same as an archive for "ctr images import" and
"docker load", NAME-OS-ARCH.spdx.json says what is in it. Standard output has a line for each image: its name and the
digest that it will have in any registry.

The same sources, Go and C compiler give the same bytes. SOURCE_DATE_EPOCH sets the time that the images say.`,
		Example: `  go run ./deploy/images build --version v1.2.3 --platform linux/amd64,linux/arm64
  go run ./deploy/images build --image webhook --platform linux/arm64
  go run ./deploy/images build --platform linux/arm64 --cc arm64="zig cc -target aarch64-linux-gnu.2.34"`,
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	o := &f.options
	cmd.Flags().StringVar(&o.Out, "out", "bin/images", "folder that takes the images")
	cmd.Flags().StringVar(&o.Version, "version", "dev", "version: the tag, and what the programs say they are")
	cmd.Flags().StringVar(&o.Revision, "revision", "", "commit, for the label of that name")
	cmd.Flags().StringVar(&o.Repository, "repository", "gpuslice", "what the names of the images begin with")
	cmd.Flags().StringSliceVar(&f.platforms, "platform", []string{"linux/amd64"}, "platforms, of linux/amd64 and linux/arm64")
	cmd.Flags().StringSliceVar(&f.images, "image", names(recipe.Recipes()), "images to build")
	cmd.Flags().StringToStringVar(&o.Compilers, "cc", nil,
		"C compiler for an architecture, ARCH=COMMAND (default: gcc, or Debian's cross compiler)")
	cmd.Flags().StringVar(&o.Debs, "debs", "", "folder that holds Debian's libc6 packages, for machines that cannot fetch them")
	cmd.Flags().BoolVar(&o.Newest, "newest-libc", false, "where the C library of libc6.yaml is not to be had, take the newest there is")
	return cmd
}

func (f *buildFlags) run(cmd *cobra.Command) error {
	var err error
	if f.options.Platforms, err = recipe.ParsePlatforms(f.platforms); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	recipes, err := chosen(f.images)
	if err != nil {
		return err
	}
	if f.options.Created, err = recipe.Epoch(os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if f.options.Checkout, err = recipe.Checkout(); err != nil {
		return err
	}
	if f.options.Cache, err = recipe.Cache(); err != nil {
		return err
	}
	f.options.Say = say(cmd)
	images, err := recipe.Build(cmd.Context(), f.options, recipes...)
	for _, i := range images {
		report(cmd.OutOrStdout(), cmd.ErrOrStderr(), i)
	}
	return err
}

// report prints an image: for programs on stdout, for people on stderr.
func report(stdout, stderr io.Writer, i recipe.Image) {
	fmt.Fprintf(stdout, "%s %s\n", i.Name, i.Digest)
	for _, p := range slices.Sorted(maps.Keys(i.Sizes)) {
		fmt.Fprintf(stderr, "%s %s: %.1f MiB compressed\n", i.Layout, p, float64(i.Sizes[p])/(1<<20))
	}
}

func chosen(wanted []string) ([]recipe.Recipe, error) {
	for _, name := range wanted {
		if !slices.Contains(names(recipe.Recipes()), name) {
			return nil, fmt.Errorf("%w: there is no image %q: there are %s", errUsage, name, strings.Join(names(recipe.Recipes()), ", "))
		}
	}
	return slices.DeleteFunc(recipe.Recipes(), func(r recipe.Recipe) bool { return !slices.Contains(wanted, r.Name) }), nil
}

func names(recipes []recipe.Recipe) []string {
	var all []string
	for _, r := range recipes {
		all = append(all, r.Name)
	}
	return all
}
