package experiment

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"fermata/internal/conf"
	"fermata/serve"
	"fermata/spec"
)

// Both servers of the demo take 3.048 s from the first token of an answer to the
// last: 127 gaps of 24 ms, or 126 of 8.317 ms and a freeze of 2 s before the
// sixth token. So TPOT and normalized latency cannot tell them apart.
const demoScript = `models:
  steady: {ttft: 200ms, gap: 24ms, tokens: 128}
  frozen: {ttft: 200ms, gap: 8.317ms, tokens: 128, freeze: [{at: 5, for: 2s}]}
`

// demoLoad is offered to each of them.
var demoLoad = []conf.Setting{
	{Path: "schedule.rate", Value: "8"},
	{Path: "schedule.requests", Value: "64"},
	{Path: "schedule.warmup", Value: "4"},
	{Path: "workload.input", Value: "64"},
	{Path: "workload.output", Value: "128"},
	{Path: "judge.deadlines", Value: "fixed:300ms"},
	{Path: "seed", Value: "1"}, // the same moments for both
}

// Demo runs the same load against two servers of its own, one of which freezes
// its readers.
func Demo(ctx context.Context, o Options) ([]*Done, error) {
	o.fill()
	engine, err := serve.NewScript("demo.yaml", []byte(demoScript))
	if err != nil {
		return nil, fmt.Errorf("the demo's script: %w", err)
	}
	ln, err := serve.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serve.New(engine, serve.Options{}).Serve(serving, ln) }()
	defer func() { stop(); <-served }()

	if o.Out == "" {
		o.Out = filepath.Join("runs", time.Now().Format("20060102-150405")+"-demo")
	}
	var runs []*Done
	for _, model := range []string{"steady", "frozen"} {
		o.Say("%s: 64 requests at 8 a second", model)
		s, err := spec.Read("", nil, append([]conf.Setting{
			{Path: "target.url", Value: "http://" + ln.Addr().String()},
			{Path: "target.model", Value: model},
			{Path: "name", Value: model},
		}, demoLoad...))
		if err != nil {
			return nil, err
		}
		one := o
		one.Out, one.Quick = filepath.Join(o.Out, model), true
		done, err := Run(ctx, s, one)
		if err != nil {
			return nil, err
		}
		runs = append(runs, done)
		if done.End.Interrupted != "" {
			break
		}
	}
	return runs, nil
}
