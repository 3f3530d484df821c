package check

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

const (
	commandLimit = 10 * time.Second // for one answer
	commandWait  = time.Second      // for the pipes of a command that was ended
	mostSaid     = 400              // bytes of its standard error that are kept
)

// Exit statuses by which a shell says that it could not run a command.
const (
	notExecutable = 126
	notFound      = 127
)

// try runs a command with an empty answer to see that there is such a command
// and that it ends.
func try(ctx context.Context, command string) error {
	said, err := shell(ctx, command, "", commandLimit)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the check's command %q does not end within %s, tried with an empty answer", command, commandLimit)
	case err == nil, errors.As(err, &exit) && exit.ExitCode() != notExecutable && exit.ExitCode() != notFound:
		return nil
	case said != "":
		return fmt.Errorf("the check's command %q cannot be run: %s", command, said)
	}
	return fmt.Errorf("the check's command %q cannot be run: %w", command, err)
}

// run gives an answer to the command; empty means that it passes.
func run(ctx context.Context, command, answer string) string {
	said, err := shell(ctx, command, answer, commandLimit)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("the command did not end within %s", commandLimit)
	case said != "":
		return err.Error() + ": " + said
	}
	return err.Error()
}

// shell runs a command with the answer on its standard input, and with what it
// started ends it after limit. Said is the beginning of its standard error.
func shell(ctx context.Context, command, answer string, limit time.Duration) (said string, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var heard few
	c := exec.CommandContext(ctx, "sh", "-c", command)
	c.Stdin, c.Stderr, c.WaitDelay = strings.NewReader(answer), &heard, commandWait
	alone(c)
	err = c.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it passed; something that it left behind holds its output open
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return heard.line(), err
}

// A few keeps the beginning of what is written to it.
type few struct{ said []byte }

func (f *few) Write(b []byte) (int, error) {
	f.said = append(f.said, b[:min(len(b), mostSaid-len(f.said))]...)
	return len(b), nil
}

// line is what was kept, as one line.
func (f *few) line() string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(f.said), "")), " ")
}
