package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// maxSlips is how many letters a mistyped word may have wrong, and fewer than half of them: a short word is like any other.
const maxSlips = 2

// Nearest returns the accepted words that a mistyped word may mean.
func Nearest(word string, accepted []string) []string {
	// cobra compares a word with the names of commands only
	known := &cobra.Command{SuggestionsMinimumDistance: min(maxSlips, (len(strings.TrimLeft(word, "-"))-1)/2)}
	for _, name := range accepted {
		known.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	if word == "" {
		return nil
	}
	return known.SuggestionsFor(word)
}

// suggestion ends a message about a word that is not known: "; did you mean "render"?".
func suggestion(word string, accepted []string) string {
	meant := Nearest(word, accepted)
	if len(meant) == 0 {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", strings.Join(meant, " or "))
}

// unknownCommand is the error about a word in the place of one of cmd's commands.
func unknownCommand(cmd *cobra.Command, word string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	meant := suggestion(word, names)
	for _, c := range cmd.Root().Commands() {
		if below, _, err := c.Find([]string{word}); err == nil && below != c {
			meant = "; did you mean " + c.Name() + " " + word + "?"
		}
	}
	return fmt.Errorf("unknown command %q%s (%s --help lists the commands)", word, meant, cmd.CommandPath())
}

// KnownTopic denies the arguments of help that name no command below root.
func KnownTopic(cmd *cobra.Command, args []string) error {
	topic, rest, err := cmd.Root().Find(args)
	if err != nil {
		return unknownCommand(cmd.Root(), args[0])
	}
	return NoArguments(topic, rest)
}

// FlagError is the error about a flag that cannot be read. Behind a mistyped command every flag is unknown, so the
// error is about the command.
func FlagError(cmd *cobra.Command, err error) error {
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return unknownCommand(cmd, words[0])
	}
	meant := ""
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		meant = suggestion("--"+unknown.GetSpecifiedName(), names)
	}
	return fmt.Errorf("%w%s (%s --help)", err, meant, cmd.CommandPath())
}
