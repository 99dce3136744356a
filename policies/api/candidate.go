package api

// CandidateReport is the result for one way to place the pod, for explain.
type CandidateReport struct {
	Strategy StrategyName `json:"strategy"`
	Pool     string       `json:"pool"`
	Resource string       `json:"resource"`
	Chosen   bool         `json:"chosen,omitempty"`
	Slice    string       `json:"slice,omitempty"`
	Tier     Tier         `json:"tier,omitempty"`
	Why      string       `json:"why,omitempty"` // why it was not chosen
}
