package arch

// What the tests of this folder do not hold yet. An entry goes when what it names is put right; nothing is added.

// largePackages of policies may be larger than size_test.go allows. While there are any, the sum of exported names is free.
var largePackages []string

// cyclicPackages may have longer cycles of files than cycle_test.go allows.
var cyclicPackages []string

// otherWords are files and folders that still use words of words_test.go; "a/..." is a folder with all below it.
var otherWords = []string{
	"CHANGELOG.md", // lists old names beside new ones
}

// otherWordsInComments are those that use them in comments alone.
var otherWordsInComments []string
