package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"fermata/serve"
)

func newServe(s streams) *cobra.Command {
	var script, truth, listen string
	c := &cobra.Command{
		Use:   "serve --script FILE",
		Short: "A streaming OpenAI-compatible server that plays a script",
		Long: `Serve answers Chat Completions and Completions with tokens at exactly scripted
times: bursts, freezes, errors, cut streams. With --truth it logs when it really
sent each of them, so that any client can be checked. docs/serve.md has the
script language.`,
		Example: `  fermata serve --script freeze.yaml --truth truth.jsonl`,
		Args:    takes(0, 0, ""),
	}
	c.Flags().StringVar(&script, "script", "", "`FILE` with the script")
	c.Flags().StringVar(&truth, "truth", "", "`FILE` for a JSON line a request: when each event was sent")
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:8000", "`ADDRESS` to listen on; port 0 picks one")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if script == "" {
			return usagef("give a script with --script FILE")
		}
		data, err := os.ReadFile(script)
		if os.IsNotExist(err) {
			return usagef("there is no script %s", script)
		}
		if err != nil {
			return fmt.Errorf("reading the script: %w", err)
		}
		engine, err := serve.NewScript(script, data)
		if err != nil {
			return err
		}
		var log io.Writer
		if truth != "" {
			f, err := os.Create(truth)
			if err != nil {
				return fmt.Errorf("making the truth log: %w", err)
			}
			defer f.Close()
			log = f
		}
		ln, err := serve.Listen(listen)
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("%s is taken: choose another address with --listen, such as 127.0.0.1:0 for any free port", listen)
		}
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		s.say("serving %s on http://%s", strings.Join(engine.Models(), ", "), ln.Addr())
		return serve.New(engine, serve.Options{Truth: log, Version: version()}).Serve(ctx, ln)
	}
	return c
}
