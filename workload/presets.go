package workload

import (
	"embed"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Tables of joint lengths; presets/README.md says where they come from.
//
//go:embed presets/*.csv
var tables embed.FS

// A preset is joint lengths by name: pairs from a table, or two laws where only
// percentiles are published.
type preset struct {
	table         string
	input, output law
	source        string
}

var presets = map[string]preset{
	"lmsys": {
		input: law{kind: lognormal, a: 417, b: 1418}, output: law{kind: lognormal, a: 139, b: 484},
		source: "lognormal by median and 90th percentile of LMSys-Chat-1M: prompts 417 and 1,418 (Etalon's paper), answers 139 and 484 (Vidur's table, which leaves out what is longer than 4,096 in all; lengths drawn here have no such bound: --max-total gives one); drawn independently, since no correlation is published",
	},
	"sharegpt": {
		table:  "sharegpt",
		source: "1,024 pairs that stand for 30,731 of ShareGPT (Llama-2 tokens, at most 8,192 in all), from project-etalon/etalon, Apache-2.0, © 2024 Systems for AI Lab, Georgia Institute of Technology",
	},
	"arxiv": {
		table:  "arxiv",
		source: "1,024 pairs that stand for 28,257 of arXiv summarisation (Llama-2 tokens, at most 4,096 in all, which by itself correlates long prompts with short answers), from project-etalon/etalon, Apache-2.0, © 2024 Systems for AI Lab, Georgia Institute of Technology",
	},
	"azure-conv": {
		table:  "azure-conv",
		source: "1,024 pairs that stand for the 19,366 of Azure's conversation trace of 2023, from Azure/AzurePublicDataset, CC BY 4.0, Microsoft (Patel et al., Splitwise, ISCA 2024)",
	},
	"azure-code": {
		table:  "azure-code",
		source: "1,024 pairs that stand for the 8,819 of Azure's code trace of 2023, from Azure/AzurePublicDataset, CC BY 4.0, Microsoft (Patel et al., Splitwise, ISCA 2024)",
	},
}

// Presets are the names that Options.Lengths takes.
func Presets() []string { return slices.Sorted(maps.Keys(presets)) }

// PresetSource says where the lengths of a preset come from, and under which
// licence; empty where there is no such preset.
func PresetSource(name string) string { return presets[name].source }

// pairs is the preset's table; nil where it has none.
func (p preset) pairs() []pair {
	if p.table == "" {
		return nil
	}
	data, err := tables.ReadFile("presets/" + p.table + ".csv")
	if err != nil {
		panic(err) // it is part of the program
	}
	var all []pair
	for _, line := range strings.Fields(string(data))[1:] {
		a, b, _ := strings.Cut(line, ",")
		input, errA := strconv.ParseInt(a, 10, 32)
		output, errB := strconv.ParseInt(b, 10, 32)
		if errA != nil || errB != nil {
			panic("presets/" + p.table + ".csv: " + line)
		}
		all = append(all, pair{int32(input), int32(output)})
	}
	return all
}
