// Command tenant holds GPU memory as package fakegpu's library sees it: by the
// name that it gives its main thread. What it does is a script, its arguments:
//
//	hold 4Gi                hold as much from here on
//	grow to 9Gi over 2s     reach it in steps of a twentieth
//	spike 9Gi for 300ms     hold it for so long, then what was held before
//	sleep 5s                do nothing for so long
//	fork 4Gi                start a child that holds as much until it is ended
//	refork 9Gi              start a child that holds as much, again whenever it ends
//	ignore SIGTERM          go on when told to stop
//	fork on SIGTERM         start a child that holds as much as this one, and go on
//	reexec                  run itself again under the same PID, and go on
//	device 1                hold what follows on that device
//	say crossed             say a word on stdout at once
//	exit 3                  end with that code
//
// After the script it holds what it holds until it is ended. A heartbeat on
// stdout says every 100 ms how much that is, so that one who watches sees a pause
// or an end.
package main

import (
	"fmt"
	"os"
	"time"
)

func main() {
	t := &tenant{args: os.Args[1:], at: resumed()}
	if err := t.restore(); err != nil {
		fmt.Fprintf(os.Stderr, "tenant: %v\n", err)
		os.Exit(2)
	}
	go t.beat(100 * time.Millisecond)
	if err := t.perform(); err != nil {
		fmt.Fprintf(os.Stderr, "tenant: %v\n", err)
		os.Exit(2)
	}
	select {}
}
