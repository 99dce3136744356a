package envvar

// Literal is an environment variable with a literal value.
type Literal struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
