package spec

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"fermata/capacity"
	"fermata/internal/conf"
)

// A Saturation is the highest rate that a system serves. It is read from a number,
// or from the name of a capacity result, which Load opens.
type Saturation struct {
	RPS    float64  // requests a second; 0 where unknown
	Doubts []string // why it is not to be relied on: those of capacity.ReadSaturation

	File string // that Load is to read
}

// doubtful stands between a rate and what is doubtful about it, where it is
// written down: the capacity result may be gone when the run file is read again.
const doubtful = " doubtful: "

// UnmarshalText takes what MarshalText wrote, a number, or else the name of a file.
func (s *Saturation) UnmarshalText(b []byte) error {
	text := strings.TrimSpace(string(b))
	if text == "" {
		return errors.New("must be a rate in requests a second, or a file that `fermata capacity -o json` wrote")
	}
	number, doubts, doubted := strings.Cut(text, doubtful)
	rps, err := strconv.ParseFloat(number, 64)
	if err != nil {
		*s = Saturation{File: text}
		return nil
	}
	*s = Saturation{RPS: rps}
	if doubted {
		s.Doubts = strings.Split(doubts, ", ")
	}
	return nil
}

// MarshalText is the rate with what is doubtful about it.
func (s Saturation) MarshalText() ([]byte, error) {
	if s.File != "" {
		return []byte(s.File), nil
	}
	text := strconv.FormatFloat(s.RPS, 'g', -1, 64)
	if len(s.Doubts) > 0 {
		text += doubtful + strings.Join(s.Doubts, ", ")
	}
	return []byte(text), nil
}

// Load reads the rate in the capacity result that was named, if one was.
func (s *Saturation) Load() error {
	if s.File == "" {
		return nil
	}
	data, err := os.ReadFile(s.File)
	if err != nil {
		return fmt.Errorf("%q is neither a rate in requests a second nor a capacity result that can be read: %w", s.File, err)
	}
	rps, doubts, err := capacity.ReadSaturation(data)
	if err != nil {
		return fmt.Errorf("%s %w", s.File, err)
	}
	*s = Saturation{RPS: rps, Doubts: doubts}
	return nil
}

// load is Load with a problem of a run file.
func (s *Saturation) load() []conf.Problem {
	if err := s.Load(); err != nil {
		return []conf.Problem{{Path: "judge.saturation", Text: err.Error()}}
	}
	return nil
}

// unsaid says that s holds neither a rate nor a file.
func (s *Saturation) unsaid() bool { return s.File == "" && !(s.RPS > 0 || s.RPS < 0) }
