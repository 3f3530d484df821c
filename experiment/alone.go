package experiment

import (
	"errors"
	"fmt"
	"os"

	"fermata/recording"
)

// alone keeps other processes out of a folder that several sittings fill, until the
// file is closed: two of them would ask twice, and mix what they write.
func alone(dir string) (*os.File, error) {
	held, err := recording.Lock(dir)
	if errors.Is(err, recording.ErrHeld) {
		return nil, &Misuse{Failure{Saw: "another process is at work in " + dir, Help: "Wait until it ends, or give another folder with --out."}}
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return held, nil
}
