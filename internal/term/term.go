// Package term holds the rules of speaking on a terminal: whether there is one,
// how wide it is, whether colour is welcome, and how numbers, units and text are
// written for people.
package term

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ) // every Unix has it, and only terminals answer
	return err == nil
}

// Width is the number of columns of the terminal f, or 0 where f is none or does
// not say.
func Width(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}

// Columns is the width that the environment asks for in COLUMNS, or 0 where it
// says nothing sane: for output that is no terminal.
func Columns() int {
	n, err := strconv.Atoi(strings.TrimSpace(os.Getenv("COLUMNS")))
	if err != nil || n < 20 || n > 10_000 {
		return 0
	}
	return n
}

// Colour reports whether f may be coloured: it is a terminal that can, and
// NO_COLOR (https://no-color.org) is unset or empty.
func Colour(f *os.File) bool {
	return IsTerminal(f) && colourWelcome(os.Getenv)
}

func colourWelcome(getenv func(string) string) bool {
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}

// A Tone is what a piece of text is for. The zero value is plain.
type Tone int

// The tones, each with one colour or weight.
const (
	Normal Tone = iota
	Strong      // headings, what matters: bold
	Faint       // what may be skipped: grey
	Good        // green
	Bad         // red
	Care        // warnings, what is open: yellow
)

var codes = [...]string{Strong: "1", Faint: "2", Good: "32", Bad: "1;31", Care: "33"}

// Paint gives s the colour of tone where colour is allowed, else leaves it as it
// is.
func Paint(s string, tone Tone, colour bool) string {
	if !colour || tone == Normal || s == "" {
		return s
	}
	return "\x1b[" + codes[tone] + "m" + s + "\x1b[0m"
}
