package policies

// mig is a stub.
func mig() Strategy { return Strategy{Name: "mig"} }
