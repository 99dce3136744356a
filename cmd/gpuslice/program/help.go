package program

import (
	"slices"
	"strings"
	"sync"

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
	{"Try before you apply:", []string{"render", "policy", "recommend", "audit", "translate"}},
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

// splitFlags has the help of every command list first the flags that are its own, and then those that name the cluster.
func splitFlags(root *cobra.Command) {
	const all = "{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	addFlagUsages()
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), all, "{{flagUsages .LocalFlags | trimTrailingWhitespaces}}", 1))
}

// addFlagUsages runs once: it adds to state that all commands of the process share.
var addFlagUsages = sync.OnceFunc(func() { cobra.AddTemplateFunc("flagUsages", flagUsages) })

func flagUsages(all *pflag.FlagSet) string {
	own, connection := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	names := kube.ConnectionFlags()
	all.VisitAll(func(f *pflag.Flag) {
		if slices.Contains(names, f.Name) {
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
