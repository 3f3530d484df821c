package report

import (
	"fmt"
	"io"
	"strings"

	"fermata/internal/term"
	"fermata/metrics"
)

// Markdown writes what Terminal does as GitHub-flavoured Markdown, with all
// columns of every table.
func Markdown(w io.Writer, results []*metrics.Result) error {
	p, err := pageOf(results)
	if err != nil {
		return err
	}
	return drawMarkdown(w, p)
}

func drawMarkdown(w io.Writer, p *page) error {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**\n", escape(p.verdict.text))
	for _, block := range p.blocks {
		markdownBlock(&b, &block)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func markdownBlock(b *strings.Builder, block *block) {
	if block.title != "" {
		fmt.Fprintf(b, "\n## %s\n", escape(block.title))
	}
	if len(block.facts) > 0 {
		b.WriteByte('\n')
	}
	for _, f := range block.facts {
		if f.key == "" {
			fmt.Fprintf(b, "- %s\n", escape(f.text))
			continue
		}
		fmt.Fprintf(b, "- **%s:** %s\n", escape(f.key), escape(f.text))
	}
	for _, w := range block.warnings {
		fmt.Fprintf(b, "\n> **Warning `%s`:** %s\n", term.Plain(w.Code), escape(term.Plain(w.Text)))
		if w.Help != "" {
			fmt.Fprintf(b, ">\n> → %s\n", escape(term.Plain(w.Help)))
		}
	}
	if block.table != nil {
		markdownTable(b, block.table)
	}
	if len(block.picture) > 0 {
		fmt.Fprintf(b, "\n```\n%s\n```\n", strings.Join(block.picture, "\n"))
	}
	for _, n := range block.notes {
		fmt.Fprintf(b, "\n%s\n", escape(n))
	}
}

func markdownTable(b *strings.Builder, t *table) {
	b.WriteString("\n|")
	for _, c := range t.columns {
		b.WriteString(" " + escape(c.head) + " |")
	}
	b.WriteString("\n|")
	for _, c := range t.columns {
		if c.left {
			b.WriteString(" --- |")
		} else {
			b.WriteString(" ---: |")
		}
	}
	b.WriteByte('\n')
	for _, r := range t.rows {
		b.WriteByte('|')
		for _, c := range r {
			b.WriteString(" " + escape(c.text+c.mark) + " |")
		}
		b.WriteByte('\n')
	}
}

// escapes are what Markdown would take for markup inside our texts. Brackets are
// markup only as links, underscores not inside words.
var escapes = strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", "*", `\*`, "`", "\\`", "~", `\~`, "](", `]\(`)

func escape(s string) string { return escapes.Replace(s) }
