package podspec

// Variable is an environment variable with a literal value.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
