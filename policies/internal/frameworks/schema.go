package frameworks

// Profile is one framework, as its YAML file describes it. The file is decoded strictly and case-sensitively.
type Profile struct {
	Name        string              `json:"name"`                // for labels and policies
	Title       string              `json:"title"`               // for people
	Description string              `json:"description"`         // how the framework can be bounded
	Sources     []string            `json:"sources,omitempty"`   // where the facts come from
	Match       Match               `json:"match"`               // how a container is recognised
	Versions    []versionSpec       `json:"versions,omitempty"`  // how an image shows the version; the first that fits
	Believe     *Range              `json:"believe,omitempty"`   // a version outside is a tag that meant something else
	Runs        *runsSpec           `json:"runs,omitempty"`      // the framework beneath
	AllocConf   *AllocConf          `json:"allocConf,omitempty"` // settings text that policy may replace
	Variables   map[string]Variable `json:"variables,omitempty"` // variables that rules may set
	Uncaps      []Uncap             `json:"uncaps,omitempty"`    // user settings that take a cap away
	Shim        *Range              `json:"shim,omitempty"`      // releases that guard/shim can cap
	Rules       []Rule              `json:"rules,omitempty"`     // the first rule that can give a variable does
	Arguments   []Argument          `json:"arguments,omitempty"` // limits that exist only on the command line
	Ranks       *ranksSpec          `json:"ranks,omitempty"`     // settings by which processes start that need a GPU each
}

// Match recognises a container. Image patterns are compared component by component with the end of the
// repository path, so that a mirror's prefix does not matter; "*" stands for anything within one component. Commands are
// words that begin a command; one that begins with "-" may stand anywhere.
type Match struct {
	Images   []string `json:"images,omitempty"`
	Commands []string `json:"commands,omitempty"`
}

// versionSpec reads a version from an image. The groups of Tag (or of Repository) are joined with dots; without
// either the tag itself is read. Steps turn the number of a distribution into the framework's.
type versionSpec struct {
	Images     []string   `json:"images"`
	Tag        string     `json:"tag,omitempty"`
	Repository string     `json:"repository,omitempty"`
	Steps      []stepSpec `json:"steps,omitempty"`
}

// stepSpec maps versions of a distribution to one of the framework: from From on it is Is. The last step of a list is
// open: later versions have that version or a newer one.
type stepSpec struct {
	From string `json:"from"`
	Is   string `json:"is"`
}

// Range is the versions from From (included) to Below (excluded). A pre-release counts as older than its release.
type Range struct {
	From  string `json:"from,omitempty"`
	Below string `json:"below,omitempty"`
}

// runsSpec names the profile of the framework beneath, whose rules apply too.
type runsSpec struct {
	Profile      string        `json:"profile"`
	Versions     []versionSpec `json:"versions,omitempty"`     // if the image shows it directly
	Steps        []stepSpec    `json:"steps,omitempty"`        // by the version of the outer framework
	OverridesCap bool          `json:"overridesCap,omitempty"` // the outer framework sets the inner cap again
}

// AllocConf is a settings text with a default and the keys that policy may use in its place.
type AllocConf struct {
	Default string               `json:"default"`
	Keys    map[string]allocSpec `json:"keys"`
}

// allocSpec is a key of the settings text: the first version that knows it, and the values it takes (a regular expression
// for the whole value; empty where policy may not use the key).
type allocSpec struct {
	From  string `json:"from"`
	Value string `json:"value,omitempty"`
}

// Variable describes a variable that a rule may set.
type Variable struct {
	Names     []string `json:"names,omitempty"`     // all names of this setting, the one in force first; default: its own
	Flags     []string `json:"flags,omitempty"`     // arguments that say the same and win
	Exclusive bool     `json:"exclusive,omitempty"` // the framework dies when two of the names are set
	Blind     bool     `json:"blind,omitempty"`     // harmless even where envFrom may have set it
	Reads     string   `json:"reads,omitempty"`     // how a user's own value is compared with ours
}

// Uncap is a user's variable that removes the cap. Values empty means any value; Says is the reason, for people.
type Uncap struct {
	Name   string   `json:"name"`
	Values []string `json:"values,omitempty"`
	Says   string   `json:"says"`
}

// Rule sets variables when its condition holds. Uncapped is the reason why the rule's variables hold no cap.
type Rule struct {
	When     When      `json:"when,omitempty"`
	Uncapped string    `json:"uncapped,omitempty"`
	Caution  *Caution  `json:"caution,omitempty"`
	Set      []Setting `json:"set,omitempty"`
}

// Caution is a warning about the memory that the framework takes by default, unless the pod lowers that itself.
type Caution struct {
	Says      string   `json:"says"`
	Variables []string `json:"variables,omitempty"` // a value that fits the slice lowers it
	Flags     []string `json:"flags,omitempty"`     // a flag of any value may
}

// When is a rule's condition; an omitted field always holds. An unknown version is in no range, and meets Unknown
// alone.
type When struct {
	Range   `json:",inline"`
	Unknown bool   `json:"unknown,omitempty"`
	Views   []View `json:"views,omitempty"`
	Alone   *bool  `json:"alone,omitempty"`
	// Given are settings of which the pod makes one itself, and Uncapped goes on after it; Unless are settings of which it makes none. Each is
	// the name of a variable or, with a dash, an argument: "=a|b" with one of these values, "!=a|b" with another.
	Given  []string `json:"given,omitempty"`
	Unless []string `json:"unless,omitempty"`
}

// Setting gives a variable its value: the parts that are not empty, joined with commas. A part is text with
// formulas in double braces; one formula that has no answer leaves the variable to the next rule.
type Setting struct {
	Name  string   `json:"name"`
	Parts []string `json:"parts"`
	Cap   bool     `json:"cap,omitempty"`
}

// Argument is a limit that the framework reads from its command line alone.
type Argument struct {
	Flag    string   `json:"flag"`
	Most    string   `json:"most"`             // formula of the largest value that fits
	Views   []View   `json:"views"`            // where it is needed
	Unless  []string `json:"unless,omitempty"` // arguments that switch it off: "--flag", or "--flag=value" for that value alone
	Default string   `json:"default"`          // the effect of omitting it, for people
	Takes   string   `json:"takes,omitempty"`  // the value that counts without it
	Cap     bool     `json:"cap,omitempty"`    // a small enough value bounds the whole process
	// AppendTo are the commands that take the flag at the end of their arguments, where the last of a name counts.
	AppendTo []string `json:"appendTo,omitempty"`
}

// ranksSpec are settings, as in When.Given, with the number of processes that need a GPU of their own.
type ranksSpec struct {
	Settings []string `json:"settings"`         // the first that the pod makes counts
	Unless   []string `json:"unless,omitempty"` // settings by which processes of other pods count too
	Says     string   `json:"says"`             // the effect, for people: it follows the setting
}
