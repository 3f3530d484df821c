package main

import (
	"io"
	"sync"

	"fermata/internal/term"
)

// Notices are standard error with a view at its end, while there is one: whatever
// is said then goes above the view.
type notices struct {
	out io.Writer

	mu   sync.Mutex
	view *term.View
}

func (c *notices) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view != nil {
		c.view.Print(string(p))
		return len(p), nil
	}
	return c.out.Write(p)
}

// show draws the view, which begins with the first lines.
func (c *notices) show(lines func(width int) []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view == nil {
		f := terminal(c)
		if f == nil {
			return
		}
		c.view = term.OpenView(f)
	}
	c.view.Show(lines)
}

// clear takes the view away.
func (c *notices) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.view != nil {
		c.view.Close()
		c.view = nil
	}
}
