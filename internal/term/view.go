package term

import (
	"context"
	"io"
	"os"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"
)

// viewFPS is how often a view is drawn a second, at most.
const viewFPS = 4

// A View is a few lines at the end of a terminal that are drawn again and again,
// while other lines go above them. It asks the terminal nothing and reads no keys,
// so that ^C stays a signal. OpenView makes one, Close takes it away.
type View struct {
	program *tea.Program
	over    chan struct{}
	once    sync.Once
	restore func() // the terminal's modes; nil where they were left
}

// OpenView begins a view on a terminal.
func OpenView(f *os.File) *View {
	restore := quietControls(f)
	v := openView(f, os.Environ())
	v.restore = restore
	return v
}

func openView(out io.Writer, environ []string) *View {
	v := &View{over: make(chan struct{})}
	v.program = tea.NewProgram(&viewModel{}, tea.WithContext(context.Background()), tea.WithOutput(out), tea.WithInput(nil),
		tea.WithoutSignalHandler(), tea.WithEnvironment(environ), tea.WithFPS(viewFPS))
	go func() {
		defer close(v.over)
		_, _ = v.program.Run() // a terminal that cannot be written to is no reason to stop measuring
	}()
	return v
}

// Show draws what lines makes for a width in columns. It returns at once and is for
// any goroutine.
func (v *View) Show(lines func(width int) []string) { v.program.Send(linesOf(lines)) }

// Print writes lines above the view.
func (v *View) Print(text string) { v.program.Send(above(strings.TrimRight(text, "\n"))) }

// Close takes the view away and leaves the terminal as it was.
func (v *View) Close() {
	v.once.Do(func() {
		v.program.Send(linesOf(nil))
		v.program.Quit()
		<-v.over
		if v.restore != nil {
			v.restore()
		}
	})
}

type (
	linesOf func(width int) []string
	above   string
)

type viewModel struct {
	lines linesOf
	width int
}

func (m *viewModel) Init() tea.Cmd { return nil }

func (m *viewModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case linesOf:
		m.lines = msg
	case above:
		return m, tea.Println(string(msg))
	case tea.WindowSizeMsg:
		m.width = msg.Width
	}
	return m, nil
}

func (m *viewModel) View() tea.View {
	v := tea.View{DisableBracketedPasteMode: true} // nothing is read
	if m.lines != nil && m.width > 0 {
		v.SetContent(strings.Join(m.lines(m.width), "\n"))
	}
	return v
}
