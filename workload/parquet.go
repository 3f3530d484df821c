package workload

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// A parquetFile reads the columns of conversations or articles, and only those,
// row by row. It remembers where it stands, since rows are asked in order.
type parquetFile struct {
	groups []parquet.RowGroup
	shape  string
	first  int // column of roles or articles
	second int // column of contents or abstracts; -1 for none

	mu     sync.Mutex
	at     int64 // row that the leaves stand at
	leaves [2]*leaf
	left   int64 // rows of the group that are left
	recent map[int64]item
}

// recentRows are kept: requests are built a little ahead, and not quite in order.
const recentRows = 64

func (d *dataset) scanParquet(o Options) error {
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	f, err := parquet.OpenFile(d.file, info.Size(), parquet.SkipBloomFilters(true))
	if err != nil {
		return fmt.Errorf("opening it as Parquet: %w", err)
	}
	for _, group := range f.Metadata().RowGroups {
		for _, c := range group.Columns {
			if c.MetaData.Codec == format.Lz4Raw {
				return errors.New("it is compressed with LZ4, which cannot be read reliably: write it with zstd or snappy")
			}
		}
	}
	p := &parquetFile{groups: f.RowGroups(), at: -1, recent: map[int64]item{}}
	if err := p.recognise(f.Schema().Columns()); err != nil {
		return err
	}
	if o.Format != "" && o.Format != p.shape {
		return fmt.Errorf("its columns are those of format %s, not of %s", p.shape, o.Format)
	}
	d.parquet, d.shape = p, p.shape
	defer p.close()
	var t timing
	for row := range f.NumRows() {
		it, err := p.read(row)
		if err != nil {
			// A page that cannot be read takes the rows behind it along.
			return fmt.Errorf("row %d: %w", row+1, err)
		}
		if err := d.take(o, &t, it, place(row), row+1); err != nil {
			return err
		}
	}
	return nil
}

// recognise finds the columns, whatever the writer called the list's elements.
func (p *parquetFile) recognise(columns [][]string) error {
	find := func(root, leaf string) int {
		return slices.IndexFunc(columns, func(path []string) bool { return path[0] == root && path[len(path)-1] == leaf })
	}
	if p.first, p.second = find("conversation", "role"), find("conversation", "content"); p.first >= 0 && p.second >= 0 {
		p.shape = lmsysChat
		return nil
	}
	if p.first, p.second = find("conversations", "from"), find("conversations", "value"); p.first >= 0 && p.second >= 0 {
		p.shape = shareGPT
		return nil
	}
	if p.first, p.second = find("article", "article"), find("abstract", "abstract"); p.first >= 0 {
		p.shape = arxiv
		return nil
	}
	var names []string
	for _, path := range columns {
		if !slices.Contains(names, path[0]) {
			names = append(names, path[0])
		}
	}
	return fmt.Errorf("no column conversation (lmsys), conversations (sharegpt) or article (arxiv) in it; there are %s", strings.Join(names, ", "))
}

// item is a row, for any goroutine.
func (p *parquetFile) item(row int64) (item, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if it, ok := p.recent[row]; ok {
		return it, nil
	}
	it, err := p.read(row)
	if err != nil {
		return it, fmt.Errorf("row %d: %w", row+1, err)
	}
	if len(p.recent) >= recentRows {
		delete(p.recent, slices.Min(slices.Collect(maps.Keys(p.recent))))
	}
	p.recent[row] = it
	return it, nil
}

func (p *parquetFile) read(row int64) (item, error) {
	if row != p.at || p.left == 0 {
		if err := p.seek(row); err != nil {
			return item{}, err
		}
	}
	first, err := p.leaves[0].row()
	if err != nil {
		return item{}, err
	}
	var second []string
	if p.leaves[1] != nil {
		if second, err = p.leaves[1].row(); err != nil {
			return item{}, err
		}
	}
	p.at, p.left = p.at+1, p.left-1
	if p.shape == arxiv {
		return article(strings.Join(first, ""), strings.Join(second, "")), nil
	}
	if len(first) != len(second) {
		return item{}, errors.New("not every message has both a speaker and a text")
	}
	turns := make([]turn, len(first))
	for i := range first {
		turns[i] = turn{speaker(first[i]), second[i]}
	}
	return opening(turns), nil
}

func (p *parquetFile) close() {
	for i, l := range p.leaves {
		if l != nil {
			l.pages.Close()
		}
		p.leaves[i] = nil
	}
	p.at = -1
}

func (p *parquetFile) seek(row int64) error {
	p.close()
	in := row
	for _, g := range p.groups {
		if in >= g.NumRows() {
			in -= g.NumRows()
			continue
		}
		for i, column := range []int{p.first, p.second} {
			if column < 0 {
				continue
			}
			l := &leaf{pages: g.ColumnChunks()[column].Pages()}
			p.leaves[i] = l
			if err := l.pages.SeekToRow(in); err != nil {
				return err
			}
		}
		p.at, p.left = row, g.NumRows()-in
		return nil
	}
	return io.ErrUnexpectedEOF
}

// A leaf reads the texts of one column of one row group.
type leaf struct {
	pages  parquet.Pages
	page   parquet.Page
	values parquet.ValueReader
	buf    [64]parquet.Value
	at, n  int
}

// peek is the next value; io.EOF behind the last.
func (l *leaf) peek() (*parquet.Value, error) {
	for l.at == l.n {
		if l.values == nil {
			page, err := l.pages.ReadPage()
			if err != nil {
				return nil, err
			}
			l.page, l.values = page, page.Values()
		}
		n, err := l.values.ReadValues(l.buf[:])
		l.at, l.n = 0, n
		if err != nil && err != io.EOF {
			return nil, err
		}
		if n == 0 {
			parquet.Release(l.page)
			l.values = nil
		}
	}
	return &l.buf[l.at], nil
}

// row is the column's texts of the next row; null is none.
func (l *leaf) row() ([]string, error) {
	var texts []string
	for first := true; ; first = false {
		v, err := l.peek()
		if err == io.EOF && !first || err == nil && !first && v.RepetitionLevel() == 0 {
			return texts, nil
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		if !v.IsNull() {
			texts = append(texts, string(v.ByteArray()))
		}
		l.at++
	}
}
