package experiment

import (
	"fmt"

	"fermata/recording"
)

// Recover finishes the recording in dir, judges it, and says what was found.
func Recover(dir, version string) ([]string, error) {
	found, err := recording.Recover(dir)
	if err != nil {
		return nil, err
	}
	var told []string
	if found.Finished {
		told = append(told, fmt.Sprintf("%s is whole, with %d requests: nothing to recover", dir, found.Requests))
	} else {
		told = append(told, fmt.Sprintf("recovered %d requests with %d arrivals; %d of them were under way", found.Requests, found.Arrivals, found.Incomplete))
	}
	if found.Torn > 0 {
		told = append(told, fmt.Sprintf("%d bytes after the last whole frame were dropped: what was being written when the process died", found.Torn))
	}
	for _, d := range found.Damages {
		told = append(told, "damaged: "+d.String())
	}
	if found.Kept != "" {
		told = append(told, "the damaged journal is kept in "+found.Kept)
	}
	result, err := Judge(dir, nil, version)
	if err != nil {
		return told, err
	}
	if err := writeResult(dir, result); err != nil {
		return told, err
	}
	return append(told, fmt.Sprintf("see it with `fermata report %s`", dir)), nil
}
