package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// every calls f with the commands of the tree.
func every(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		every(sub, f)
	}
}

func tree() *cobra.Command {
	return newRoot(streams{out: io.Discard, err: io.Discard})
}

// parses says whether a command line, without its `fermata`, names a command and
// flags that exist, and takes as many arguments. Nothing is run.
func parses(words []string) error {
	c, rest, err := tree().Find(words)
	if err != nil {
		return err
	}
	if c.HasSubCommands() && c.Name() != "fermata" {
		return nil
	}
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	if err := c.ParseFlags(rest); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil
		}
		return err
	}
	if help, _ := c.Flags().GetBool("help"); help || c.Args == nil {
		return nil
	}
	return c.Args(c, c.Flags().Args())
}

var commandEnd = regexp.MustCompile(`^(\||\|\||&&|&|;|>|>>|2>|<)$`)

// split is the words of a command line as a shell would see them, up to a pipe or
// a redirection.
func split(line string) []string {
	var words []string
	var word strings.Builder
	quote, open := rune(0), false
	end := func() {
		if open {
			words = append(words, word.String())
		}
		word.Reset()
		open = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, open = r, true
		case r == ' ' || r == '\t':
			end()
		case r == '#' && !open:
			return words
		default:
			word.WriteRune(r)
			open = true
		}
	}
	end()
	for i, w := range words {
		if commandEnd.MatchString(w) {
			return words[:i]
		}
	}
	return words
}

// commands are the lines that begin with a prompt and `fermata`, with lines that
// end in a backslash joined.
func commands(text, prompt string) []string {
	var all []string
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		line = strings.TrimSpace(line)
		rest, ok := strings.CutPrefix(line, prompt+"fermata")
		if ok && (rest == "" || rest[0] == ' ') {
			all = append(all, strings.TrimSpace(rest))
		}
	}
	return all
}

var console = regexp.MustCompile("(?ms)^```console\n(.*?)^```")

// The manual cannot name commands or flags that do not exist.
func TestConsoleBlocks(t *testing.T) {
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	pages = append(pages, filepath.Join(root, "README.md"))
	blocks := 0
	for _, path := range pages {
		page, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range console.FindAllStringSubmatch(string(page), -1) {
			for _, line := range commands(m[1], "$ ") {
				blocks++
				if err := parses(split(line)); err != nil {
					t.Errorf("%s: `fermata %s`: %v", filepath.Base(path), line, err)
				}
			}
		}
	}
	t.Logf("%d commands on %d pages", blocks, len(pages))
}

func TestConsoleBlocksAreRead(t *testing.T) {
	const page = "```console\n$ fermata run http://h \\\n    --rate 4 | less\nMeasured\n$ fermata report runs/a --slo 'ttft<=1s and e2e<=2s' # again\n$ ls\n```\n"
	got := commands(console.FindStringSubmatch(page)[1], "$ ")
	if len(got) != 2 {
		t.Fatalf("%q", got)
	}
	for i, want := range []string{"run|http://h|--rate|4", "report|runs/a|--slo|ttft<=1s and e2e<=2s"} {
		if words := strings.Join(split(got[i]), "|"); words != want {
			t.Errorf("%s, not %s", words, want)
		}
	}
	for line, wrong := range map[string]bool{
		"": false, "demo": false, "run --help": false, "--version": false, "completion bash": false, "report a b -o json": false,
		"run http://h --rate 1": false, "run http://h --rte 1": true, "nothing": true, "recover": true, "report a --rate 1": true, "demo now": true,
	} {
		if err := parses(split(line)); (err != nil) != wrong {
			t.Errorf("%q: %v", line, err)
		}
	}
}

var (
	flagWord    = regexp.MustCompile(`(?m)(?:^|[\s(])--([a-z][a-z-]+)`)
	commandWord = regexp.MustCompile("`fermata ([a-z]+)")
	pageWord    = regexp.MustCompile(`docs/[a-z]+\.md`)
)

// Help names only what exists: the flags, commands and pages in its text, and its
// examples.
func TestHelpIsTrue(t *testing.T) {
	every(tree(), func(c *cobra.Command) {
		if c.Name() == "completion" || c.HasParent() && c.Parent().Name() == "completion" {
			return // cobra's own words
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: %q should be a short line without a full stop", c.CommandPath(), c.Short)
		}
		for _, m := range flagWord.FindAllStringSubmatch(c.Long, -1) {
			if c.HasParent() && c.Flags().Lookup(m[1]) == nil {
				t.Errorf("%s tells of --%s, which it does not have", c.CommandPath(), m[1])
			}
		}
		for _, m := range commandWord.FindAllStringSubmatch(c.Long, -1) {
			if found, _, err := tree().Find([]string{m[1]}); err != nil || found.Name() != m[1] {
				t.Errorf("%s tells of `fermata %s`, which does not exist", c.CommandPath(), m[1])
			}
		}
		for _, page := range pageWord.FindAllString(c.Long, -1) {
			if _, err := os.Stat(filepath.Join("..", "..", page)); err != nil {
				t.Errorf("%s: %v", c.CommandPath(), err)
			}
		}
		for _, line := range append(commands(c.Example, ""), commands(c.Long, "")...) {
			if err := parses(split(line)); err != nil {
				t.Errorf("%s: example `fermata %s`: %v", c.CommandPath(), line, err)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" || strings.Contains(f.Usage, "\n") {
				t.Errorf("%s --%s needs one line of help", c.CommandPath(), f.Name)
			}
		})
	})
}
