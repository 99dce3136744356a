// Program backtest prints how far package sizing can be trusted: it hides the later part of histories, estimates from the earlier
// part, and counts how often the estimate was exceeded; for traces of real containers, and for generated kinds that are hard.
//
//	make backtest TRACES=DIR [JSON=FILE]
package main
