package limits

import (
	"fmt"
	"strconv"
	"time"
)

// policy is the spelling of PolicyVariable: the guard's behavior.
type policy struct {
	Act                Act            `json:"act"`
	WarnPercent        int            `json:"warnPercent"`
	PressurePercent    int            `json:"pressurePercent"`
	Grace              period         `json:"grace"`
	TermGrace          period         `json:"termGrace"`
	Settle             period         `json:"settle"`
	Interval           period         `json:"interval"`
	FastInterval       period         `json:"fastInterval"`
	MaxTerminations    int            `json:"maxTerminations"`
	TerminationsWindow period         `json:"terminationWindow"`
	Escalation         Escalation     `json:"terminate"`
	DryRun             bool           `json:"dryRun,omitempty"`
	MPSTermination     MPSTermination `json:"mpsTermination"`
	IdleReport         period         `json:"idleReport,omitempty"`
	IdleTerminate      period         `json:"idleTerminate,omitempty"`
}

// period is a time.Duration spelt as Go spells it, "1.5s".
type period time.Duration

func (p period) MarshalText() ([]byte, error) { return []byte(time.Duration(p).String()), nil }

func (p *period) UnmarshalText(text []byte) error {
	const longest = 32
	if len(text) > longest {
		return fmt.Errorf("%s... is not a duration such as \"1.5s\"", strconv.Quote(string(text[:longest])))
	}
	d, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as \"1.5s\"", text)
	}
	*p = period(d)
	return nil
}

func policyOf(l Limits) policy {
	return policy{
		Act: l.Act, WarnPercent: l.WarnPercent, PressurePercent: l.PressurePercent,
		Grace: period(l.Grace), TermGrace: period(l.TermGrace), Settle: period(l.Settle),
		Interval: period(l.Interval), FastInterval: period(l.FastInterval),
		MaxTerminations: l.MaxTerminations, TerminationsWindow: period(l.TerminationsWindow), Escalation: l.Escalation,
		DryRun: l.DryRun, MPSTermination: l.MPSTermination, IdleReport: period(l.IdleReport), IdleTerminate: period(l.IdleTerminate),
	}
}

func (p policy) into(l *Limits) {
	l.Act, l.WarnPercent, l.PressurePercent = p.Act, p.WarnPercent, p.PressurePercent
	l.Grace, l.TermGrace, l.Settle = time.Duration(p.Grace), time.Duration(p.TermGrace), time.Duration(p.Settle)
	l.Interval, l.FastInterval = time.Duration(p.Interval), time.Duration(p.FastInterval)
	l.MaxTerminations, l.TerminationsWindow, l.Escalation = p.MaxTerminations, time.Duration(p.TerminationsWindow), p.Escalation
	l.DryRun, l.MPSTermination = p.DryRun, p.MPSTermination
	l.IdleReport, l.IdleTerminate = time.Duration(p.IdleReport), time.Duration(p.IdleTerminate)
}
