package sizing

// row holds factors on the peak so far, by hours of history.
type row struct {
	hours   float64
	factors [len(tableCoverages)]float64
}

var tableCoverages = [...]float64{0.90, 0.95}

// table stands in for a fleet that is too small. Its factors are conformal quantiles of "later peak / peak so far" of 63 containers
// of one image generation service over a day (trace GenTD26, alibaba/clusterdata, cluster-trace-v2026-GenAI), too few for more than
// 95 %. It does not cover other services, or the day after.
var table = []row{
	{1, [...]float64{1.89, 1.91}},
	{3, [...]float64{1.58, 1.85}},
	{6, [...]float64{1.44, 1.50}},
	{9, [...]float64{1.28, 1.47}},
	{11, [...]float64{1.20, 1.34}},
}

// tableHolds is for how many hours the table holds: the trace ends then.
const tableHolds = 12

// tableFactor is the factor for so many hours of history, from the row and column beside it that give more; false: there is none.
func tableFactor(hours, coverage float64) (factor float64, ok bool) {
	for c, stated := range tableCoverages {
		if coverage > stated+1e-9 {
			continue
		}
		for _, r := range table {
			if r.hours <= hours {
				factor, ok = r.factors[c], true
			}
		}
		return factor, ok
	}
	return 0, false
}

// SizeOrTable is Size, or where there are too few workloads the peak times the factor of a built-in table, or times the largest
// factor of the workloads that there are, if that is larger. It reports false for less than an hour of history, and for a coverage
// above 0.95 that the workloads cannot give.
func (c *Calibration) SizeOrTable(peak, hours, coverage float64) (mib float64, fromTable, ok bool) {
	if mib, ok = c.Size(peak, coverage); ok {
		return mib, false, true
	}
	factor, ok := tableFactor(hours, coverage)
	return max(peak*max(factor, c.mostFactor), DriverContext), true, ok
}
