package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"fermata/experiment"
	"fermata/internal/term"
)

// peers prints one table: what each client made of the same loads.
func (b *bench) peers() error {
	type client struct {
		name string
		run  func(*experiment.Trial) (cell, error)
	}
	clients := []client{
		{"C epoll loop: the limit", b.reader},
		{"**Fermata**", func(t *experiment.Trial) (cell, error) { return b.ours(*t) }},
	}
	if b.tools.python != "" {
		clients = append(clients, client{"aiohttp reader", b.aiohttp}, client{"inference-perf 0.7.0", b.inferencePerf})
	}
	fmt.Fprintf(b.out, "| streams × events/s | client | events/s | CPU/event | error p50 | p99 | p99.9 | peak memory | |\n| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n")
	for _, load := range strings.Split(cmp.Or(b.only, "100x20,1000x20"), ",") {
		n, rate, err := parseLoad(load)
		if err != nil {
			return err
		}
		for _, c := range clients {
			t := experiment.SpreadTrial(n, rate, b.span)
			var all []cell
			for i := range b.k {
				b.say("%s, %s: %d of %d", load, strings.Trim(c.name, "*"), i+1, b.k)
				got, err := c.run(&t)
				if err != nil {
					return err
				}
				all = append(all, got)
			}
			b.peerRow(n, rate, c.name, all)
		}
	}
	fmt.Fprintf(b.out, "\n%s CPU/event of Fermata includes decoding and journal, in brackets its event loop alone. Error: the client's stamp less the time of sending.\n", b.machine())
	return nil
}

func (b *bench) peerRow(n int, rate float64, name string, all []cell) {
	at := func(pick func(cell) float64) string { return term.Duration(median(all, pick)) }
	used := at(func(c cell) float64 { return c.perEvent })
	if timed := median(all, func(c cell) float64 { return c.timed }); timed >= 0 {
		used += " (" + term.Duration(timed) + ")"
	}
	var remarks []string
	void, short := 0, int64(0)
	for _, c := range all {
		if c.void() {
			void++
		}
		short += c.Wanted - c.Events
	}
	if void > 0 {
		remarks = append(remarks, fmt.Sprintf("%d of %d void", void, len(all)))
	}
	if short != 0 {
		remarks = append(remarks, fmt.Sprintf("%d events missing", short))
	}
	fmt.Fprintf(b.out, "| %d × %g | %s | %s | %s | %s | %s | %s | %.0f MiB | %s |\n", n, rate, name,
		term.Count(int64(median(all, func(c cell) float64 { return float64(c.Events) / c.SpanNs * 1e9 }))), used,
		at(func(c cell) float64 { return float64(c.Error[0]) }), at(func(c cell) float64 { return float64(c.Error[1]) }), at(func(c cell) float64 { return float64(c.Error[2]) }),
		median(all, func(c cell) float64 { return c.RSSKiB / 1024 }), strings.Join(remarks, ", "))
	_ = b.out.Flush()
}

// parseLoad reads 1000x20: streams, events a second each.
func parseLoad(s string) (n int, rate float64, err error) {
	a, r, ok := strings.Cut(s, "x")
	if n, err = strconv.Atoi(a); err == nil && ok {
		rate, err = strconv.ParseFloat(r, 64)
	}
	if err != nil || !ok || n < 1 || rate <= 0 {
		return 0, 0, fmt.Errorf("%q is no load such as 1000x20", s)
	}
	return n, rate, nil
}
