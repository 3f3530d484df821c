// Package seed derives one seed for each purpose from the one seed of a run, so
// that drawing more for one purpose never changes what another draws.
package seed

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
)

// Derive is the seed for a purpose: the first eight bytes, little-endian, of
// SHA-256 over seed (eight bytes, little-endian) and purpose. Purposes are
// named "room: what", such as "schedule: gaps".
func Derive(seed uint64, purpose string) uint64 {
	first, _ := derive(seed, purpose)
	return first
}

// Rand is a generator for a purpose: a PCG that starts from the first sixteen
// bytes of the same hash. It is for one goroutine.
func Rand(seed uint64, purpose string) *rand.Rand {
	return rand.New(rand.NewPCG(derive(seed, purpose)))
}

func derive(seed uint64, purpose string) (first, second uint64) {
	b := binary.LittleEndian.AppendUint64(nil, seed)
	sum := sha256.Sum256(append(b, purpose...))
	return binary.LittleEndian.Uint64(sum[:8]), binary.LittleEndian.Uint64(sum[8:16])
}
