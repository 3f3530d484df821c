package spec

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"fermata/capacity"
	"fermata/internal/conf"
)

// saturations puts the rate into the settings that name a capacity result in its
// place.
func saturations(sets []conf.Setting) ([]conf.Setting, error) {
	for i, s := range sets {
		if s.Path != "judge.saturation" {
			continue
		}
		if _, err := strconv.ParseFloat(s.Value, 64); err == nil {
			continue
		}
		rps, err := saturationIn(s.Value)
		if err != nil {
			return nil, conf.Mistakes{{File: s.From, Path: s.Path, Text: err.Error()}}
		}
		sets = slices.Clone(sets)
		sets[i].Value = strconv.FormatFloat(rps, 'g', -1, 64)
	}
	return sets, nil
}

// saturationIn reads the saturation in a capacity result.
func saturationIn(file string) (float64, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("%q is neither a rate in requests a second nor a capacity result that can be read: %w", file, err)
	}
	rps, err := capacity.ReadSaturation(data)
	if err != nil {
		return 0, fmt.Errorf("%s %w", file, err)
	}
	return rps, nil
}
