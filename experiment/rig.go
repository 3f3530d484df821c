package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"fermata/beacon"
	"fermata/internal/place"
)

// A Rig is a beacon and the places of its processes: what trials are made on.
// NewRig makes one.
type Rig struct {
	Beacon      *beacon.Process
	ServerCores []int // that the beacon is kept to; empty for all
	ClientCores []int
	Realtime    bool // clients too run ahead of everything else, where that is allowed

	command func(role ...string) *exec.Cmd
	dir     string
	remove  func()
	trials  int
}

// NewRig starts a beacon, on a core of its own where there are two, and ahead of
// everything else there if this user may. command makes a command of this
// executable: "beacon" and a folder must run BeaconMain, "trial" TrialMain. Realtime asks the
// same for clients, which isolates them from a busy machine.
func NewRig(command func(role ...string) *exec.Cmd, realtime bool) (*Rig, error) {
	r := &Rig{command: command, Realtime: realtime}
	if all := place.Cores(); len(all) > 1 {
		r.ServerCores, r.ClientCores = all[:1], all[1:]
	}
	var err error
	if r.dir, r.remove, err = tempFolder(); err != nil {
		return nil, err
	}
	if r.Beacon, err = beacon.Start(command("beacon", r.dir), place.Place{Cores: r.ServerCores, Realtime: true}); err != nil {
		r.remove()
		return nil, err
	}
	return r, nil
}

// BeaconMain is a rig's beacon as a process of its own. It ends when in does, and then
// removes the rig's folder dir, so that nothing is left of a rig that was killed either.
func BeaconMain(dir string, in io.Reader, out io.Writer) error {
	err := beacon.Main(in, out)
	if !strings.HasPrefix(filepath.Base(dir), trialFolders) { // whoever typed this meant something else
		return err
	}
	for range 20 { // a trial may be writing into it still, as it ends
		if os.RemoveAll(dir) == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// Close ends the beacon and removes the recordings.
func (r *Rig) Close() error {
	r.remove()
	return r.Beacon.Stop()
}

// At is where clients run.
func (r *Rig) At() place.Place { return place.Place{Cores: r.ClientCores, Realtime: r.Realtime} }

// mostTrial is how long a trial may take.
const mostTrial = time.Minute

// Make carries out one trial and says what came of it.
func (r *Rig) Make(ctx context.Context, t Trial) (*Trialed, error) {
	if _, err := r.Beacon.Report(); err != nil { // what came before is not of this trial
		return nil, err
	}
	r.trials++
	t.Dir = filepath.Join(r.dir, fmt.Sprint(r.trials))
	t.URL = "http://" + r.Beacon.Address + "/v1/chat/completions?" + t.Plan.Query()
	limited, cancel := context.WithTimeout(ctx, mostTrial)
	defer cancel()
	taken, err := r.client(limited, &t)
	switch {
	case ctx.Err() != nil:
		return nil, ErrInterrupted
	case limited.Err() != nil:
		return nil, fmt.Errorf("a load of the self-test did not end in %s: this machine is too busy for it", mostTrial)
	}
	if err != nil {
		return nil, err
	}
	told, err := r.Beacon.Report()
	if err != nil {
		return nil, err
	}
	return judgeTrial(&t, taken, &told)
}

// client runs the trial's client to its end.
func (r *Rig) client(ctx context.Context, t *Trial) (*Taken, error) {
	cmd := r.command("trial")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("the self-test's client: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("the self-test's client: %w", err)
	}
	at := r.At()
	if t.Wide {
		at.Cores = nil
	}
	if _, _, err := place.Start(cmd, at); err != nil {
		return nil, fmt.Errorf("starting the self-test's client: %w", err)
	}
	gone := context.AfterFunc(ctx, func() {
		in.Close() // it ends by itself …
		time.AfterFunc(2*time.Second, func() { cmd.Process.Kill() })
	})
	defer gone()
	var taken Taken
	err = json.NewEncoder(in).Encode(t)
	if err == nil {
		err = json.NewDecoder(out).Decode(&taken)
	}
	in.Close()
	if werr := cmd.Wait(); werr != nil {
		err = werr // which says more than that it told nothing
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("the self-test's client: %w", err)
	case taken.Failure != "":
		return nil, fmt.Errorf("the self-test's client: %s", taken.Failure)
	}
	return &taken, nil
}
