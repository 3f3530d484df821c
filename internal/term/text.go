package term

import (
	"strings"
	"unicode"
)

// Cells is how many columns s takes on a terminal. Colours take none, combining
// marks none, East Asian wide characters and emoji two.
func Cells(s string) int {
	n, escape := 0, false
	for _, r := range s {
		switch {
		case escape:
			escape = r != 'm'
		case r == '\x1b':
			escape = true
		case r < 0x20 || r == 0x7f || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case wide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// wide reports whether r is a wide or full-width character (Unicode TR11), by
// its blocks.
func wide(r rune) bool {
	return r >= 0x1100 && (r <= 0x115f ||
		r >= 0x2e80 && r <= 0xa4cf && r != 0x303f ||
		r >= 0xac00 && r <= 0xd7a3 ||
		r >= 0xf900 && r <= 0xfaff ||
		r >= 0xfe30 && r <= 0xfe6f ||
		r >= 0xff00 && r <= 0xff60 ||
		r >= 0xffe0 && r <= 0xffe6 ||
		r >= 0x1f300 && r <= 0x1faff ||
		r >= 0x20000 && r <= 0x3fffd)
}

// Left pads s with spaces on its right to width cells; longer text stays whole.
func Left(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-Cells(s)))
}

// Right pads s with spaces on its left to width cells; longer text stays whole.
func Right(s string, width int) string {
	return strings.Repeat(" ", max(0, width-Cells(s))) + s
}

// Cut shortens plain text to width cells, with an ellipsis where it was longer.
func Cut(s string, width int) string {
	if Cells(s) <= width {
		return s
	}
	var b strings.Builder
	room := width - 1
	for _, r := range s {
		if room -= Cells(string(r)); room < 0 {
			break
		}
		b.WriteRune(r)
	}
	return b.String() + "…"
}

// Plain is s on one line without control characters, so that text from a server
// can neither move the cursor nor change colours.
func Plain(s string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(clean), " ")
}

// Wrap breaks text at spaces into lines of at most width cells. A word longer
// than a line stands alone and whole, so that an address can still be copied.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case Cells(line)+1+Cells(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// Fold breaks text as Wrap does, and words that are longer than a line too, names
// between their parts: for a column of a table, which nothing may leave.
func Fold(text string, width int) []string {
	var lines []string
	for _, line := range Wrap(text, width) {
		for Cells(line) > width && width > 1 {
			head := prefix(line, width)
			head = head[:nameBreak(line, len(head))]
			lines, line = append(lines, head), line[len(head):]
		}
		lines = append(lines, line)
	}
	return lines
}

// nameBreak is where to break a name of several parts at n at most: before a dot or
// behind an underscore, unless that leaves half of the line empty.
func nameBreak(name string, n int) int {
	for at := n; at > n/2; at-- {
		if name[at] == '.' || name[at-1] == '_' {
			return at
		}
	}
	return n
}

// prefix is as much of s as fits into width cells, at least a character.
func prefix(s string, width int) string {
	n := 0
	for i, r := range s {
		if n += Cells(string(r)); n > width && i > 0 {
			return s[:i]
		}
	}
	return s
}
