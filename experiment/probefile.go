package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// probesSchema is that of the file in which a hosted plan keeps its probes: the
// header, then a line for each, written before the next is asked, so that a
// process that was killed can be gone on with.
const probesSchema = "fermata.probes/1"

// A probeHeader says what the probes of a file have in common.
type probeHeader struct {
	Schema   string    `json:"schema"`
	Target   string    `json:"target"`
	Model    string    `json:"model,omitempty"`
	Seed     uint64    `json:"seed"`
	Shortest int32     `json:"shortest_tokens"`
	Longest  int32     `json:"longest_tokens"`
	Lengths  int       `json:"lengths"`
	Began    time.Time `json:"began"`
}

// A probeFile is such a file, open for more. openProbes makes one.
type probeFile struct {
	w    *os.File
	held *os.File // the folder, which is nobody else's meanwhile; nil until it is there
	head probeHeader
	new  bool // the header is not written yet
	dir  string
}

// openProbes opens the file of a folder and reads what it has; head becomes its
// header where there is one. A last line that was not finished is removed.
func openProbes(dir string, head *probeHeader) (f *probeFile, all []probed, err error) {
	f = &probeFile{dir: dir}
	if exists(dir) {
		if f.held, err = alone(dir); err != nil {
			return nil, nil, err
		}
	}
	if all, err = f.open(head); err != nil {
		f.close()
		return nil, nil, err
	}
	f.head = *head
	return f, all, nil
}

func (f *probeFile) open(head *probeHeader) ([]probed, error) {
	path := filepath.Join(f.dir, "probes.jsonl")
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if entries, _ := os.ReadDir(f.dir); len(entries) > 0 {
			return nil, misusef("%s is not empty, and holds no probes to go on with: give another folder with --out, or leave --out away", f.dir)
		}
		f.new = true
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the probes: %w", err)
	}
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	lines := bytes.Split(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
	var had probeHeader
	if err := json.Unmarshal(lines[0], &had); err != nil || had.Schema != probesSchema {
		return nil, misusef("%s is no file of probes (%s): give another folder with --out", path, probesSchema)
	}
	if err := had.fits(head); err != nil {
		return nil, fmt.Errorf("going on with %s: %w", path, err)
	}
	*head = had
	all := make([]probed, len(lines)-1)
	for i, line := range lines[1:] {
		if err := json.Unmarshal(line, &all[i]); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+2, err)
		}
	}
	f.w, err = os.OpenFile(path, os.O_RDWR, 0o644)
	if err == nil {
		err = f.w.Truncate(int64(len(whole)))
	}
	if err == nil {
		_, err = f.w.Seek(0, 2)
	}
	if err != nil {
		return nil, fmt.Errorf("going on with the probes: %w", err)
	}
	return all, nil
}

// fits says in what a plan differs from the probes that there are.
func (h *probeHeader) fits(plan *probeHeader) error {
	switch {
	case h.Target != plan.Target:
		return misusef("its probes asked %s: give another folder with --out", h.Target)
	case plan.Model != "" && h.Model != "" && h.Model != plan.Model:
		return misusef("its probes asked the model %s: give another folder with --out", h.Model)
	case h.Shortest != plan.Shortest || h.Longest != plan.Longest || h.Lengths != plan.Lengths:
		return misusef("its probes have --shortest %d --longest %d --points %d: give the same, or another folder with --out", h.Shortest, h.Longest, h.Lengths)
	}
	return nil
}

// name settles the model that the server turned out to have, and writes the header
// of a new file.
func (f *probeFile) name(model string) error {
	if !f.new {
		if f.head.Model != "" && model != "" && f.head.Model != model {
			return misusef("the endpoint has the model %s now, and the probes that there are asked %s: name it with --model, or give another folder with --out", model, f.head.Model)
		}
		return nil
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return fmt.Errorf("making the profile's folder: %w", err)
	}
	var err error
	if f.held == nil {
		if f.held, err = alone(f.dir); err != nil {
			return err
		}
	}
	if f.w, err = os.OpenFile(filepath.Join(f.dir, "probes.jsonl"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); err != nil {
		return fmt.Errorf("keeping the probes: %w", err)
	}
	f.head.Model, f.new = model, false
	return f.write(&f.head)
}

// add keeps a probe for good.
func (f *probeFile) add(p *probed) error { return f.write(p) }

func (f *probeFile) write(v any) error {
	if f == nil { // a simulated plan keeps nothing
		return nil
	}
	line, err := json.Marshal(v)
	if err == nil {
		_, err = f.w.Write(append(line, '\n'))
	}
	if err == nil {
		err = f.w.Sync()
	}
	if err != nil {
		return fmt.Errorf("keeping a probe: %w", err)
	}
	return nil
}

func (f *probeFile) close() {
	for _, file := range []*os.File{f.w, f.held} {
		if file != nil {
			_ = file.Close() // every line was synced
		}
	}
}
