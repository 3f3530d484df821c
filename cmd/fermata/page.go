package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"fermata/compare"
	"fermata/experiment"
	"fermata/internal/conf"
	"fermata/metrics"
	"fermata/report"
)

// checkHTML refuses a path that no page can be written to, before anything is
// measured. A folder means report.html in it.
func checkHTML(c *cobra.Command, path *string) error {
	if *path == "" {
		if c.Flags().Changed("html") {
			return usagef("--html needs the path of a file to write, not an empty one")
		}
		return nil
	}
	if info, err := os.Stat(*path); err == nil && info.IsDir() {
		*path = filepath.Join(*path, "report.html")
	}
	dir := filepath.Dir(*path)
	if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return usagef("--html %s: there is no folder %s", *path, dir)
	} else if err == nil && !info.IsDir() {
		return usagef("--html %s: %s is a file, not a folder", *path, dir)
	}
	return nil
}

// A page is what is to be drawn: runs that were judged under sets, and requests that
// it is to hold in any case.
type page struct {
	dirs       []string
	sets       []conf.Setting
	results    []*metrics.Result
	show       []int64
	comparison *compare.Comparison // nil without one
}

// page writes the page, if it was asked for.
func (s streams) page(path string, p page) error {
	if path == "" {
		return nil
	}
	runs, err := experiment.Portray(p.dirs, p.sets, p.results, p.show)
	if err != nil {
		return err
	}
	return s.writePage(path, runs, p.comparison)
}

// drawable refuses requests that none of the runs has measured.
func drawable(runs []report.Portrayed, show []int64) error {
	for _, index := range show {
		if !slices.ContainsFunc(runs, func(r report.Portrayed) bool {
			return slices.ContainsFunc(r.Portrait.Streams, func(s metrics.Stream) bool { return s.Index == index })
		}) {
			return usagef("--request %d: there is no measured request of that number", index)
		}
	}
	return nil
}

func (s streams) writePage(path string, runs []report.Portrayed, c *compare.Comparison) error {
	return s.writeHTML(path, func(w io.Writer) error { return report.HTML(w, runs, c) })
}

// writeHTML writes a page, if one was asked for.
func (s streams) writeHTML(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	if err := writeWhole(path, func(f *os.File) error { return write(f) }); err != nil {
		return fmt.Errorf("writing the page %s: %w", path, err)
	}
	s.tell("page in %s", path)
	return nil
}

// pageOfRuns is page for runs that have just been made.
func (s streams) pageOfRuns(path string, runs ...*experiment.Done) error {
	var p page
	for _, d := range runs {
		p.dirs, p.results = append(p.dirs, d.Dir), append(p.results, d.Result)
	}
	metrics.Contrasts(p.results)
	return s.page(path, p)
}

// pageOfComparison is page for runs that were compared.
func (s streams) pageOfComparison(path string, c experiment.Comparison, out *compare.Comparison) error {
	if path == "" {
		return nil
	}
	dirs, err := c.Runs()
	if err != nil {
		return err
	}
	p := page{dirs: dirs, sets: c.Sets, comparison: out}
	for _, spot := range out.BlindSpots {
		p.show = append(p.show, spot.Requests...)
	}
	for _, dir := range dirs {
		r, err := experiment.Judge(dir, c.Sets, c.Version)
		if err != nil {
			return err
		}
		p.results = append(p.results, r)
	}
	return s.page(path, p)
}

// writeWhole writes a file so that it is there whole or as it was.
func writeWhole(path string, write func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	err = errors.Join(write(f), f.Chmod(0o644))
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
