package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gpuslice/gpuslice/policies/api"
)

// TextOrJSON are the formats of a command that prints a page for people.
func TextOrJSON() []string { return []string{"text", "json"} }

// OutputFlag registers -o, --output, which takes one of the formats. The first of them is the default.
func OutputFlag(cmd *cobra.Command, output *string, formats []string) {
	cmd.Flags().StringVarP(output, "output", "o", formats[0], "`FORMAT`: "+strings.Join(formats, ", "))
	_ = cmd.Flags().SetAnnotation("output", completedBy, formats) // fails only for a flag that is not registered
	check(cmd, func() error { return checkOutput(*output, formats) })
}

// AllNamespacesFlag registers -A, --all-namespaces of a command that has -n too.
func AllNamespacesFlag(cmd *cobra.Command, all *bool, usage string) {
	cmd.Flags().BoolVarP(all, "all-namespaces", "A", false, usage)
	check(cmd, func() error {
		if *all && cmd.Flag("namespace").Value.String() != "" {
			return errors.New("-n names one namespace, and -A means all: leave out one of them")
		}
		return nil
	})
}

// check has a command return a problem of its flags beside the problems that it finds itself.
func check(cmd *cobra.Command, problem func() error) {
	own := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) (err error) {
		if own != nil {
			err = own(cmd, args)
		}
		return errors.Join(err, problem())
	}
}

// completedBy is the annotation of a flag with the words that the shell completes it by.
const completedBy = "gpuslice.dev/completed-by"

// CompleteWords lets the shell complete, in cmd and the commands below it, the flags that take one of a few words.
func CompleteWords(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if words := f.Annotations[completedBy]; len(words) > 0 {
			// fails only where it was registered before
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	})
	for _, below := range cmd.Commands() {
		CompleteWords(below)
	}
}

// checkOutput returns an error if output is none of the accepted formats.
func checkOutput(output string, accepted []string) error {
	name, template, given := strings.Cut(output, "=")
	if name == JSONPath && slices.Contains(accepted, JSONPath) {
		if !given {
			return errors.New("-o jsonpath: the template is missing: -o jsonpath='{.items[*]}'")
		}
		_, err := parseJSONPath(template)
		return err
	}
	if slices.Contains(accepted, output) {
		return nil
	}
	return fmt.Errorf("-o %q: accepted: %s", output, strings.Join(accepted, ", "))
}

// SystemNamespaceFlag registers --system-namespace.
func SystemNamespaceFlag(flags *pflag.FlagSet, namespace *string) {
	flags.StringVar(namespace, "system-namespace", api.SystemNamespace,
		"`NAMESPACE` of the gpuslice installation and of its policy ConfigMaps")
}

// NoArguments denies arguments and names the flag for files: "unknown command pod.yaml" helps nobody.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.Flags().Lookup("filename") != nil {
		return fmt.Errorf("unexpected argument %q: name files with -f (%s --help)", args[0], cmd.CommandPath())
	}
	if !cmd.HasSubCommands() {
		return fmt.Errorf("unexpected argument %q (%s --help)", args[0], cmd.CommandPath())
	}
	return unknownCommand(cmd, args[0])
}
