package policies

// mps is a stub.
func mps() Strategy { return Strategy{Name: "mps"} }
