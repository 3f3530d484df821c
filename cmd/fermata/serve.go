package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"fermata/internal/conf"
	"fermata/serve"
	"fermata/spec"
)

// serving are the flags of serve.
type serving struct {
	script, sim, truth, listen string
	scale                      float64
	set                        []string
	keyEnv                     string
	tls                        bool
	cert, key                  string
}

func newServe(s streams) *cobra.Command {
	var f serving
	c := &cobra.Command{
		Use:   "serve --script FILE | --sim SPEC",
		Short: "A streaming OpenAI-compatible server: a script, or the simulator",
		Long: `Serve answers Chat Completions and Completions. With --script, tokens come at
exactly scripted times: bursts, freezes, errors, cut streams (docs/serve.md has
the language). With --sim, a simulated serving system decides, in real time or,
with --time-scale, so many times as fast: it queues, batches, stalls and refuses
as the real one would (docs/simulator.md). With --truth the server logs when it
really sent each token, so that any client can be checked; a simulator adds
truth_gaps.parquet and truth_iterations.parquet beside that file.`,
		Example: `  fermata serve --script freeze.yaml --truth truth.jsonl
  fermata serve --sim examples/systems/llama3-8b-1xh100-stall-free.yaml \
      --time-scale 10
  fermata serve --sim system.yaml --set scheduler.chunk=512 --tls \
      --api-key-env KEY`,
		Args: takes(0, 0, ""),
	}
	c.Flags().StringVar(&f.script, "script", "", "`FILE` with the script")
	c.Flags().StringVar(&f.sim, "sim", "", "`SPEC` of the simulator")
	c.Flags().Float64Var(&f.scale, "time-scale", 1, "simulated `SECONDS` a second, with --sim")
	c.Flags().StringArrayVar(&f.set, "set", nil, "`KEY=VALUE` of the simulator's spec, such as scheduler.chunk=1024")
	c.Flags().StringVar(&f.truth, "truth", "", "`FILE` for a JSON line a request: when each event was sent")
	c.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8000", "`ADDRESS` to listen on; port 0 picks one")
	c.Flags().StringVar(&f.keyEnv, "api-key-env", "", "environment `VARIABLE` with the key that clients must send")
	c.Flags().BoolVar(&f.tls, "tls", false, "serve over TLS, with a certificate of its own unless --tls-cert gives one")
	c.Flags().StringVar(&f.cert, "tls-cert", "", "`FILE` with the certificate, PEM")
	c.Flags().StringVar(&f.key, "tls-key", "", "`FILE` with its key, PEM")
	c.RunE = func(c *cobra.Command, _ []string) error { return s.serve(c.Context(), f) }
	return c
}

func (s streams) serve(ctx context.Context, f serving) error {
	engine, err := f.engine()
	if err != nil {
		return err
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	if f.truth != "" {
		log, err := os.Create(f.truth)
		if err != nil {
			return fmt.Errorf("making the truth log: %w", err)
		}
		defer log.Close()
		o.Truth = io.Writer(log)
	}
	ln, err := serve.Listen(f.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is taken: choose another address with --listen, such as 127.0.0.1:0 for any free port", f.listen)
	}
	var address *net.AddrError
	var host *net.DNSError
	switch {
	case errors.As(err, &address):
		return usagef("--listen %s: %s; give HOST:PORT, such as 127.0.0.1:8000", f.listen, address.Err)
	case errors.As(err, &host):
		return usagef("--listen %s: there is no host %s here; give one of this machine's addresses, such as 127.0.0.1:8000", f.listen, host.Name)
	case err != nil:
		return fmt.Errorf("listening at %s: %w; choose another address with --listen", f.listen, err)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	scheme, faster := "http", ""
	if o.TLS != nil {
		scheme = "https"
	}
	if f.sim != "" && (f.scale > 1 || f.scale < 1) {
		faster = fmt.Sprintf(", %g simulated seconds a second", f.scale)
	}
	s.say("serving %s on %s://%s%s", strings.Join(engine.Models(), ", "), scheme, ln.Addr(), faster)
	return serve.New(engine, o).Serve(ctx, ln)
}

// engine is what answers.
func (f *serving) engine() (serve.Engine, error) {
	switch {
	case f.script == "" && f.sim == "":
		return nil, usagef("give a script with --script FILE, or a simulator's spec with --sim SPEC")
	case f.script != "" && f.sim != "":
		return nil, usagef("--script and --sim exclude each other: one of them answers")
	case f.script != "" && (len(f.set) > 0 || f.scale > 1 || f.scale < 1):
		return nil, usagef("--set and --time-scale are for --sim: a script's times are those of the clock")
	case f.sim != "":
		return f.simulator()
	}
	data, err := os.ReadFile(f.script)
	if os.IsNotExist(err) {
		return nil, usagef("there is no script %s", f.script)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the script: %w", err)
	}
	return serve.NewScript(f.script, data)
}

func (f *serving) simulator() (serve.Engine, error) {
	if !(f.scale >= 0.001 && f.scale <= 1000) {
		return nil, usagef("--time-scale must be from 0.001 to 1000 simulated seconds a second, not %g", f.scale)
	}
	data, err := readSim(f.sim)
	if err != nil {
		return nil, err
	}
	o := serve.SimOptions{TimeScale: f.scale}
	for _, text := range f.set {
		one, err := spec.Set(text)
		if err != nil {
			return nil, usageError{err}
		}
		one.Path = spec.SimKey(one.Path)
		o.Sets = append(o.Sets, conf.Setting(one))
	}
	if f.truth != "" {
		o.Truth = filepath.Dir(f.truth)
	}
	return serve.NewSim(f.sim, data, o)
}

func (f *serving) options() (serve.Options, error) {
	o := serve.Options{Version: version()}
	if f.keyEnv != "" {
		if o.APIKey = os.Getenv(f.keyEnv); o.APIKey == "" {
			return o, usagef("the environment variable %s, which --api-key-env names, is empty", f.keyEnv)
		}
	}
	switch {
	case (f.cert == "") != (f.key == ""):
		return o, usagef("--tls-cert and --tls-key belong together: give both, or --tls alone for a certificate of its own")
	case f.tls || f.cert != "":
		host, _, err := net.SplitHostPort(f.listen)
		if err != nil {
			host = ""
		}
		var c tls.Certificate
		if c, err = serve.Certificate(f.cert, f.key, host); err != nil {
			return o, err
		}
		o.TLS = &c
	}
	return o, nil
}
