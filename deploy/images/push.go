package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/gpuslice/gpuslice/deploy/images/oci"
	"github.com/gpuslice/gpuslice/deploy/images/recipe"
)

func newPushCommand() *cobra.Command {
	var from string
	to := oci.Destination{}
	cmd := &cobra.Command{
		Use:   "push REPOSITORY",
		Short: "Push the images of a folder to a registry",
		Long: `Push the images that "build" left in a folder, with their SPDX documents, to REPOSITORY/webhook and so on, or those and the
chart of a release, with the credentials that "docker login" or "podman login" left. Standard output has the name of each by digest.`,
		Example: `  go run ./deploy/images push registry.example.com/gpuslice
  go run ./deploy/images push --tag v1.2.3-ours registry.example.com/gpuslice
  go run ./deploy/images push --from out/release/oci registry.example.com/gpuslice`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return pushAll(cmd, from, args[0], to) },
	}
	cmd.Flags().StringVar(&from, "from", "bin/images", "folder with the images")
	cmd.Flags().StringVar(&to.Tag, "tag", "", "tag in the registry (default: the one they were built with)")
	cmd.Flags().BoolVar(&to.PlainHTTP, "plain-http", false, "speak HTTP without TLS")
	return cmd
}

// chart is the part of a release that is no image.
const chart = "charts/gpuslice"

func pushAll(cmd *cobra.Command, from, repository string, to oci.Destination) error {
	pushed := 0
	for _, part := range append(names(recipe.Recipes()), chart) {
		dir := filepath.Join(from, filepath.FromSlash(part))
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			continue
		}
		to.Repository = repository + "/" + part
		say(cmd)("pushing %s to %s", dir, to.Repository)
		reference, err := oci.Push(cmd.Context(), dir, to)
		if err != nil {
			return err
		}
		fmt.Fprintln(cmd.OutOrStdout(), reference)
		pushed++
		if err := pushSignature(cmd, dir+oci.SignatureSuffix, to); err != nil {
			return err
		}
	}
	if pushed == 0 {
		return fmt.Errorf("there are no images in %s: build them first (go run ./deploy/images build)", from)
	}
	return nil
}

// pushSignature pushes the signature of the pushed image, if there is one, under the tag by which it is looked for.
func pushSignature(cmd *cobra.Command, dir string, to oci.Destination) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	to.Tag = ""
	_, err := oci.Push(cmd.Context(), dir, to)
	return err
}
