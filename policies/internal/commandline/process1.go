package commandline

import (
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// takesPID are programs whose argument is the number of a process.
var takesPID = []string{"kill", "wait", "renice", "jstack", "jcmd", "jmap", "jinfo", "jstat", "asprof", "profiler.sh", "gcore", "pstack", "reptyr"}

// optionPID are programs with an option that names a process.
var optionPID = []string{"nsenter", "strace", "ltrace", "gdb", "perf", "py-spy", "rbspy", "tail", "taskset", "prlimit", "ps", "pgrep", "pkill",
	"top", "lsof", "pmap", "chrt", "ionice", "waitpid", "dotnet-trace", "dotnet-dump", "dotnet-counters", "dotnet-gcdump"}

// namesFirst is an option that names process 1, in one word.
var namesFirst = regexp.MustCompile(`^(-[pPt]|--(pid|parent|target|process-id)=)1$`)

// firstInText are uses of process 1, or of all processes that are seen, in the text of any language.
var firstInText = regexp.MustCompile(`/proc/1(/|\b)|/proc/(\*|\[0-9\]|\?)|` +
	`\bkill\s*\(\s*-?1\s*[,)]|\bkill\s*\(\s*['":]\w+['"]?\s*,\s*-?1\s*\)|\bgetpid\(\)\s*[=!]=\s*1\b|\bprocess\.pid\s*[=!]==?\s*1\b|` +
	`\$(\$|BASHPID)"?\s+(-eq|-ne|=|==|!=)\s+"?1\b|(^|[\s;&|"'])\w*(pid|PID)\w*=["']?1\b`)

// optionBefore are options whose value is the next word.
var optionBefore = []string{"-p", "-P", "-t", "--pid", "--parent", "--target", "--process-id"}

// UsesFirstProcess returns the words with which a command signals, reads or waits for process 1, or for all processes that it sees;
// "": none is known. A namespace of processes that several containers share has another process 1, and more of them.
func UsesFirstProcess(command []string) string {
	size := 0
	for _, text := range command {
		if size += len(text); size > wordsLimit {
			return ""
		}
		if found := firstInText.FindString(text); found != "" {
			return strings.TrimSpace(found)
		}
	}
	words := Split(&corev1.Container{Command: command})
	program, from := "", 0
	for i, w := range words {
		text := path.Base(w.Text)
		switch {
		case text == "killall5":
			return text
		case w.Start, slices.Contains(takesPID, text), slices.Contains(optionPID, text):
			program, from = text, i
			continue
		case i == 0:
			continue
		}
		last := words[i-1].Text
		if program == "trap" && i == from+1 { // one word that is a command
			if found := UsesFirstProcess([]string{"sh", "-c", w.Text}); found != "" {
				return found
			}
		}
		switch {
		case slices.Contains(takesPID, program) && (w.Text == "1" && last != "-n" && last != "-s" || program == "kill" && w.Text == "-1" && i > from+1),
			slices.Contains(optionPID, program) && (namesFirst.MatchString(w.Text) || w.Text == "1" && slices.Contains(optionBefore, last)):
			return joined(words[from : i+1])
		}
	}
	return ""
}

func joined(words []Word) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = w.Text
	}
	return strings.Join(texts, " ")
}
