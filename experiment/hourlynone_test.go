package experiment

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fermata/internal/conf"
	"fermata/recording"
	"fermata/report"
	"fermata/spec"
)

// Keys are looked for before anything is made, all at once; an endpoint that was never
// reached takes nothing from the others.
func TestStudyWithEndpointsThatFail(t *testing.T) {
	s := providers(t)
	s.Claims, s.Every, s.For = nil, time.Second, time.Second
	dir := t.TempDir() + "/study"
	o := Options{Out: dir, Version: "test", Say: func(string, ...any) {}}
	file := filepath.Join(t.TempDir(), "nokey")
	s.Endpoints[0].APIKeyEnv = "FERMATA_NO_KEY_A"
	s.Endpoints[1].Set = map[string]string{"target.headers_env": "{x-key: FERMATA_NO_KEY_B}"}
	s.Endpoints[2].Set = map[string]string{"target.api_key_file": file}
	_, err := AskHourly(context.Background(), s, o)
	if keys := MissingKeys(""); !errors.As(err, &keys) || exists(dir) {
		t.Fatalf("without keys: %v", err)
	}
	for _, want := range []string{"FERMATA_NO_KEY_A is not set", "headers_env.x-key: the environment variable FERMATA_NO_KEY_B is not set", "api_key_file: reading the API key: open " + file} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	s.Endpoints[0].APIKeyEnv = ""
	s.Endpoints = s.Endpoints[:2]
	s.Endpoints[0].URL = "http://127.0.0.1:1" // where nobody listens
	for i := range s.Endpoints {
		s.Endpoints[i].Set = map[string]string{"schedule.requests": "2", "workload.output": "2", "workload.input": "300"}
	}
	done, err := AskHourly(context.Background(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := done.Endpoints[0], done.Endpoints[1]; a.Rounds != 0 || a.Planned != 1 || b.Rounds != 1 {
		t.Errorf("%d and %d rounds", a.Rounds, b.Rounds)
	}
	for _, format := range report.DocumentFormats.Names() {
		var out bytes.Buffer
		if err := report.WriteStudy(format, &out, done, report.TerminalOptions{Width: 300}); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if format == "terminal" && !strings.Contains(out.String(), "0 of 1 rounds") {
			t.Errorf("%s", out.String())
		}
	}
}

// Two processes in one folder would ask twice and mix what they write.
func TestFoldersOfOneProcess(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(dir string) error{
		"a study": func(dir string) error {
			s := &spec.Study{Endpoints: []spec.StudyEndpoint{{Name: "a", URL: "http://127.0.0.1:1", Model: "m"}}, Every: time.Second, For: time.Second}
			_, err := AskHourly(context.Background(), s, Options{Out: dir, Say: t.Logf})
			return err
		},
		"a hosted profile": func(dir string) error {
			_, _, err := hostedAt(context.Background(), "http://127.0.0.1:1", dir, 40)
			return err
		},
		"a sweep": func(dir string) error {
			sets := []conf.Setting{{Path: "target.url", Value: "http://127.0.0.1:1"}, {Path: "schedule.requests", Value: "2"}}
			_, _, err := (&Sweep{Subject: Subject{Sets: sets}, Rates: []string{"1"}}).Run(context.Background(), Options{Out: dir, Say: t.Logf})
			return err
		},
		"a profile": func(dir string) error {
			_, err := Profile(context.Background(), []conf.Setting{{Path: "target.url", Value: "http://127.0.0.1:1"}}, ProfilePlan{}, Options{Out: dir, Say: t.Logf})
			return err
		},
	} {
		dir := t.TempDir()
		held, err := recording.Lock(dir)
		if err != nil {
			t.Fatal(err)
		}
		var misuse *Misuse
		if err := ask(dir); !errors.As(err, &misuse) || !strings.Contains(err.Error(), "another process is at work in "+dir) || misuse.Help == "" {
			t.Errorf("%s: %v", name, err)
		}
		held.Close()
		// When that process has ended, another goes on: here to where nobody listens.
		if err := ask(dir); err == nil || errors.As(err, &misuse) {
			t.Errorf("%s, alone: %v", name, err)
		}
	}
}
