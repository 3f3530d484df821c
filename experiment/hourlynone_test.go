package experiment

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"fermata/report"
)

// Keys are looked for before anything is made, all at once; an endpoint that was never
// reached takes nothing from the others.
func TestStudyWithEndpointsThatFail(t *testing.T) {
	s := providers(t)
	s.Claims, s.Every, s.For = nil, time.Second, time.Second
	dir := t.TempDir() + "/study"
	o := Options{Out: dir, Version: "test", Say: func(string, ...any) {}}
	s.Endpoints[0].APIKeyEnv, s.Endpoints[1].APIKeyEnv = "FERMATA_NO_KEY_A", "FERMATA_NO_KEY_B"
	_, err := AskHourly(context.Background(), s, o)
	if keys := MissingKeys(""); !errors.As(err, &keys) || !strings.Contains(err.Error(), "FERMATA_NO_KEY_A is not set") || !strings.Contains(err.Error(), "FERMATA_NO_KEY_B is not set") || exists(dir) {
		t.Fatalf("without keys: %v", err)
	}
	s.Endpoints[0].APIKeyEnv, s.Endpoints[1].APIKeyEnv = "", ""
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
	for _, format := range report.StudyFormats() {
		var out bytes.Buffer
		if err := report.WriteStudy(format, &out, done, report.TerminalOptions{Width: 300}); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if format == "terminal" && !strings.Contains(out.String(), "0 of 1 rounds") {
			t.Errorf("%s", out.String())
		}
	}
}
