package doctor

import "strconv"

func decimal[T int | int32 | int64](n T) string { return strconv.FormatInt(int64(n), 10) }
