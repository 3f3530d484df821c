package experiment

import (
	"cmp"
	"fmt"

	"fermata/spec"
	"fermata/wire"
)

// chooseTransport gives all targets the same transport: one loop, one clock and
// one way of stamping for all that is compared.
func chooseTransport(s *spec.Run, all []*target) error {
	asked, urls := "", []string(nil)
	for _, one := range s.Each() {
		t := one.Target.Transport
		if asked != "" && t != "" && t != asked {
			return fmt.Errorf("the targets of a run are reached by one transport, not by %s and %s: give all of them the same", asked, t)
		}
		asked = cmp.Or(asked, t)
	}
	for _, t := range all {
		urls = append(urls, t.url)
	}
	choice, err := wire.Choose(asked, s.Connect, urls...)
	if err != nil {
		return fmt.Errorf("target.transport: %w", err)
	}
	for _, t := range all {
		t.choice = choice
	}
	return nil
}
