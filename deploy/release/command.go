package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/deploy/images/recipe"
)

const long = `release makes everything of a release but the upload: the images by digest, the chart, archives of the command line,
install.yaml, SPDX documents, checksums and provenance. deploy/release/README.md says what the files are for.`

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := newCommand()
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(stderr, "release: %v\n", err)
		return 1
	}
	return 0
}

func newCommand() *cobra.Command {
	o := Options{Programs: commandLines()}
	var images []string
	cmd := &cobra.Command{
		Use: "release", Short: "Make everything of a release but the upload", Long: long,
		Example:       "  make release VERSION=v1.2.3\n  COSIGN_KEY=key.pem make release VERSION=v1.2.3",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(cmd, images); err != nil {
				return err
			}
			files, err := Make(cmd.Context(), o)
			if err != nil {
				return err
			}
			fmt.Fprint(cmd.OutOrStdout(), summary(o, files))
			return nil
		},
	}
	cmd.Flags().StringVar(&o.Version, "version", "", "version, such as v1.2.3")
	cmd.Flags().StringVar(&o.Out, "out", "out/release", "folder that takes the release, in the place of what is there")
	cmd.Flags().StringVar(&o.Repository, "registry", "ghcr.io/gpuslice", "registry and path that the images and the chart will be pushed to")
	cmd.Flags().StringSliceVar(&images, "platform", platformNames(recipe.Platforms()), "platforms of the images")
	cmd.Flags().StringToStringVar(&o.Compilers, "cc", nil,
		"C compiler for an architecture, ARCH=COMMAND (default: gcc, or Debian's cross compiler)")
	cmd.Flags().StringVar(&o.Debs, "debs", "", "folder that holds Debian's libc6 packages, for machines that cannot fetch them")
	cmd.Flags().StringVar(&o.Key, "key", os.Getenv("COSIGN_KEY"),
		"file with an ECDSA or Ed25519 key (PEM) that signs the checksums (default: COSIGN_KEY)")
	cmd.Flags().StringVar(&o.Builder, "builder", builder(os.Getenv), "who builds, for the provenance: a URI")
	cmd.Flags().BoolVar(&o.Dirty, "dirty", false,
		"make a release of changes that are not committed, or without a section of the changelog: for trials")
	return cmd
}

// complete sets options that the command line omits, from the checkout and the environment.
func (o *Options) complete(cmd *cobra.Command, images []string) (err error) {
	if o.Platforms, err = recipe.ParsePlatforms(images); err != nil {
		return err
	}
	o.Say = func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), format+"\n", args...) }
	if o.Created, err = recipe.Epoch(os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		return err
	}
	if o.Checkout, err = recipe.Checkout(); err != nil {
		return err
	}
	o.Cache, err = recipe.Cache()
	return err
}

// builder names who builds: the workflow where there is one, else this program.
func builder(getenv func(string) string) string {
	if ref := getenv("GITHUB_WORKFLOW_REF"); ref != "" {
		return getenv("GITHUB_SERVER_URL") + "/" + ref
	}
	return source + "/tree/main/deploy/release"
}

// commandLines are the platforms that the command line is built for.
func commandLines() (all []v1.Platform) {
	for _, p := range []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"} {
		os, arch, _ := strings.Cut(p, "/")
		all = append(all, v1.Platform{OS: os, Architecture: arch})
	}
	return all
}

// summary lists the files, and how to upload them.
func summary(o Options, files []string) string {
	var out strings.Builder
	for _, f := range files {
		fmt.Fprintln(&out, f)
	}
	fmt.Fprintf(&out, "\nNothing is uploaded. To do that:\n  go run ./deploy/images push --from %s/oci %s\n  gh release create %s --notes-file %s/notes.md --verify-tag $(find %s -maxdepth 1 -type f ! -name notes.md)\n",
		o.Out, o.Repository, o.Version, o.Out, o.Out)
	return out.String()
}
