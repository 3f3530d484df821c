package experiment

import (
	"fmt"

	"fermata/internal/term"
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
		told = append(told, fmt.Sprintf("%s is whole, with %s requests: nothing to recover", dir, term.Count(found.Requests)))
	} else {
		told = append(told, fmt.Sprintf("recovered %s requests with %s arrivals; %s of them were under way", term.Count(found.Requests), term.Count(found.Arrivals), term.Count(found.Incomplete)))
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
