package deadline

// The flags that a fitted curve can carry.
const (
	ThinSupport   = "thin-support"
	LoadDependent = "load-dependent-speed"
	TooFast       = "too-fast"
	NoiseBound    = "noise-bound"
	Disagree      = "estimators-disagree"
	WideBand      = "wide-band"
	Clustered     = "clustered-in-time"
	Saturating    = "flat-or-saturating"
	NotConvex     = "not-convex"
	ShapeUnsure   = "shape-unsure"
	Shifted       = "changed-midway"
	Lossy         = "probes-failed"
)

var words = map[string]struct{ why, help string }{
	ThinSupport: {
		"too few probes met no queue, or too few in some part of the lengths, for the floor to be certain",
		"Probe more often, or in quieter hours: about ten probes over the share that meets no queue are needed.",
	},
	LoadDependent: {
		"long prompts met their floor more seldom than short ones: work for others slows them in proportion, so the long end is an upper bound",
		"Only quieter hours can show the unloaded curve. Take the upper edge for long prompts, and read it as at most.",
	},
	TooFast: {
		"some first tokens came sooner than the curve allows: prompts hit a cache, or something else than the first token was timed",
		"Begin every prompt with words of its own, and look whether the usage tells of cached tokens.",
	},
	NoiseBound: {
		"the undelayed probes scatter more than the noise model allows: miscounted tokens, mixed hardware, or waits for a running iteration",
		"Take prompt lengths from the server's usage, and keep one region and one connection.",
	},
	Disagree: {
		"the fitted curve and a low quantile of the same probes differ by more than a tenth somewhere, so one of them is wrong",
		"Look at the probes by length; more of them, or quieter hours, settle it.",
	},
	WideBand: {
		"the band is wider than a tenth on either side somewhere",
		"Probe more; until then a deadline from this curve is a range.",
	},
	Clustered: {
		"the undelayed probes lie in a few hours, so the floor may be one lucky hour",
		"Spread the probes over a day or more.",
	},
	Saturating: {
		"the curve hardly grows with the prompt, or grows less at the long end: what was timed may not be the first token",
		"See that role-only and empty events are not taken for tokens, and that prompts are as long as the server says.",
	},
	NotConvex: {
		"the curve has steps or bends that no smooth shape fits: a server that computes prompts in chunks has them, and an endpoint that changes between pools or plans at some length",
		"Trust the curve near the lengths that were probed only, probe more of them, and compare endpoints by length.",
	},
	ShapeUnsure: {
		"another shape fits better, but too few undelayed probes support it",
		"Probe more; about 150 probes at random times show a change of pools.",
	},
	Shifted: {
		"the later probes have another floor than the earlier ones: the endpoint changed its speed, or was never quiet during one of them",
		"Probe anew from now on; a curve over both is neither's.",
	},
	Lossy: {
		"more than one probe in twenty failed or was refused, so that the curve is that of what the endpoint let through",
		"Look at the failures; where the endpoint limits the rate, spread the probes over more time.",
	},
}

// Words say why a flagged curve is not to be trusted, and what would help.
func Words(flag string) (why, help string) {
	if w, ok := words[flag]; ok {
		return w.why, w.help
	}
	return "the curve carries a flag that this version does not know", "See where the deadlines file came from."
}
