package sim

import (
	"fmt"
	"slices"
	"strings"
)

const gib = 1 << 30

// A GPU is what one accelerator can do, and the shares of it that kernels reach.
type GPU struct {
	Name      string
	FLOPS     float64 // dense bf16 peak, a second
	Bandwidth float64 // of its memory, bytes a second
	Memory    float64 // usable bytes
	Link      float64 // of an all-reduce: size of the message over its time, bytes a second
	FP8       bool    // has FP8 units, of twice the bf16 peak

	Compute    float64 // efficiency of large matrix products
	Streaming  float64 // of reading weights
	Attention  float64 // of prefill attention, of the FLOPS
	KVReading  float64 // of decode attention, of the bandwidth
	Smoothness float64 // exponent of the smooth maximum of compute and memory time
	ReduceNs   float64 // latency of one all-reduce
	LayerNs    float64 // floor of a layer's small kernels
}

// Presets of efficiencies. Etalon's are fitted to the prefill times in Etalon's
// figure of Yi-34B on two H100; those of kernels to Vidur's measured linear
// kernels.
const (
	Etalon  = "etalon"
	Kernels = "kernels"
)

// GPUs are the accelerators that are known by name, with the efficiencies of the
// preset etalon. Peaks and bandwidths are the maker's; usable memory and link
// speeds are from measurements; see docs/simulator.md.
func GPUs() []GPU {
	hopper := GPU{
		FLOPS: 989.4e12, FP8: true, Compute: .76, Streaming: .85, Attention: .29, KVReading: .65,
		Smoothness: 2, ReduceNs: 12000, LayerNs: 10000,
	}
	h100, h200, a100 := hopper, hopper, hopper
	h100.Name, h100.Bandwidth, h100.Memory, h100.Link = "H100", 3.35e12, 79.1*gib, 200e9
	h200.Name, h200.Bandwidth, h200.Memory, h200.Link = "H200", 4.8e12, 139.8*gib, 300e9
	a100.Name, a100.Bandwidth, a100.Memory, a100.Link = "A100-80G", 2.039e12, 79.15*gib, 190e9
	a100.FLOPS, a100.FP8, a100.Streaming, a100.Attention = 312e12, false, .77, .55
	return []GPU{a100, h100, h200}
}

// FindGPU is the accelerator of that name, in any case.
func FindGPU(name string) (GPU, error) {
	gpus := GPUs()
	if strings.EqualFold(name, "A100") {
		name = "A100-80G"
	}
	if at := slices.IndexFunc(gpus, func(g GPU) bool { return strings.EqualFold(g.Name, name) }); at >= 0 {
		return gpus[at], nil
	}
	names := make([]string, len(gpus))
	for i, g := range gpus {
		names[i] = g.Name
	}
	return GPU{}, fmt.Errorf("no GPU %q is known: take one of %s", name, strings.Join(names, ", "))
}

// kernels gives a GPU the efficiencies of the preset of that name.
func (g GPU) kernels() GPU {
	g.Compute, g.Smoothness = .72, 1.5
	if g.Name == "A100-80G" {
		g.Streaming, g.LayerNs = .79, 20000
	} else {
		g.Streaming, g.LayerNs = .94, 30000
	}
	return g
}
