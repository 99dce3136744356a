package arch

// What the tests of this folder do not hold yet. An entry goes when what it names is put right; nothing is added.

// largePackages of policies may be larger than size_test.go allows. While there are any, the sum of exported names is free.
var largePackages = []string{"policies", "policies/internal/frameworks"}

// cyclicPackages may have longer cycles of files than cycle_test.go allows.
var cyclicPackages = []string{"cmd/gpuslice", "policies", "policies/internal/frameworks"}

// otherWords are files and folders that still use words of words_test.go; "a/..." is a folder with all below it.
var otherWords = []string{
	"certs/...", "cmd/gpuslice/...", "cmd/guard", "cmd/webhook", "deploy/...", "guard/...", "policies/...", "webhook/...",
	"CHANGELOG.md", "CONTRIBUTING.md",
	"test/apiserver", "test/bench/...", "test/chart", "test/cluster/...", "test/demo", "test/e2e", "test/fakegpu/...", "test/install",
	"test/load", "test/model", "test/ops/...", "test/rotation", "test/scenarios",
}

// otherWordsInComments are those that use them in comments alone.
var otherWordsInComments = []string{"test/observability/..."}
