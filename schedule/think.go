package schedule

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"fermata/internal/conf"
	"fermata/internal/seed"
)

// longestThink bounds think times: whoever thinks for longer has gone.
const longestThink = 24 * time.Hour

// A think says how long people take from the end of an answer to their next
// request.
type think struct {
	mean        time.Duration
	exponential bool
}

// parseThink reads a time, such as 2s, or exponential:2s.
func parseThink(text string) (think, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return think{}, nil
	}
	var t think
	var err error
	mean, ok := strings.CutPrefix(text, "exponential:")
	t.exponential = ok
	if t.mean, err = time.ParseDuration(strings.TrimSpace(mean)); err != nil {
		return think{}, fmt.Errorf("must be a time such as 2s, or exponential:2s, not %q", text)
	}
	if t.mean < 0 || t.mean > longestThink {
		return think{}, errors.New("must be between 0 and " + conf.Duration(longestThink) + ", not " + mean)
	}
	return t, nil
}

// Think is how long a user of a closed loop, or whoever has a conversation that
// came by itself, thinks before a turn; users, conversations and turns count from
// 0, and nobody thinks before turn 0. It depends on the seed,
// the user and the turn alone, not on the order of the calls: whatever the
// server's answers take, the same user thinks for the same times. The request
// is due when the answer before has ended plus this, and that is the time for
// Next. Think may be called from several goroutines.
func (s *Schedule) Think(user int, turn int64) time.Duration {
	if turn == 0 || s.think.mean == 0 {
		return 0
	}
	if !s.think.exponential {
		return s.think.mean
	}
	draw := seed.Derive(s.seed, "schedule: think "+strconv.Itoa(user)+" "+strconv.FormatInt(turn, 10))
	u := float64(draw>>11) / (1 << 53) // as rand.Float64 does it
	return time.Duration(math.Round(-math.Log(1-u) * float64(s.think.mean)))
}
