package program

import (
	"errors"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gpuslice/gpuslice/cmd/client/kube"
)

// groups are the commands of the help, by tasks.
var groups = []struct {
	title    string
	commands []string
}{
	{"See what runs:", []string{"list", "top", "explain", "pools", "quota", "page", "snapshot"}},
	{"Try before you apply:", []string{"render", "policy", "recommend", "estimate", "audit", "translate"}},
	{"Operate:", []string{"doctor", "verify", "report", "plan", "bypass", "resign", "uninstall"}},
}

// group sorts the commands of root for its help.
func group(root *cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range root.Commands() {
			if slices.Contains(g.commands, c.Name()) {
				c.GroupID = g.title
			}
		}
	}
}

// splitFlags has the help of every command list first the flags that are its own, and then those that name the cluster. It takes no
// template for that: where text/template is called, the linker keeps every method of every Kubernetes type, which are 20 MB.
func splitFlags(root *cobra.Command) {
	byCobra := root.UsageFunc()
	root.SetUsageFunc(func(c *cobra.Command) error {
		out := c.OutOrStderr()
		var usage strings.Builder
		c.SetOut(&usage)
		err := byCobra(c)
		c.SetOut(out)
		text := usage.String()
		if flags := c.LocalFlags(); flags.HasAvailableFlags() {
			text = strings.Replace(text, trimEnd(flags.FlagUsages()), trimEnd(flagUsages(flags)), 1)
		}
		_, failed := io.WriteString(out, text)
		return errors.Join(err, failed)
	})
}

func trimEnd(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) }

func flagUsages(all *pflag.FlagSet) string {
	own, connection := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	names := kube.ConnectionFlags()
	all.VisitAll(func(f *pflag.Flag) {
		if all.Lookup("kubeconfig") != nil && slices.Contains(names, f.Name) { // else --context is the number of tokens
			connection.AddFlag(f)
		} else {
			own.AddFlag(f)
		}
	})
	text := own.FlagUsages()
	if connection.HasAvailableFlags() {
		text += "\nCluster:\n" + connection.FlagUsages()
	}
	return text
}
