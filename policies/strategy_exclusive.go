package policies

// exclusive is a stub.
func exclusive() Strategy { return Strategy{Name: "exclusive"} }
