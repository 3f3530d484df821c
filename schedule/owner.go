package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
)

// Key is what an arrival's owner is found by: its session, so that the turns of
// a conversation stay together, or else its index.
func (a Arrival) Key() string {
	if a.Session != "" {
		return "session " + a.Session
	}
	return "index " + strconv.FormatInt(a.Index, 10)
}

// Owner is the one of owners whose part key is; empty where there are none. All
// who know the same owners find the same one, in whatever order they list them,
// and where one leaves only its keys move (rendezvous hashing: Thaler and
// Ravishankar 1998). Machines that draw the same schedule and send what they
// own send, together, exactly that schedule.
func Owner(key string, owners []string) string {
	var best string
	var most uint64
	for i, name := range owners {
		w := weight(name, key)
		if i == 0 || w > most || w == most && name < best {
			best, most = name, w
		}
	}
	return best
}

// weight is the first eight bytes, little-endian, of SHA-256 over the length of
// the name (eight bytes, little-endian), the name and the key.
func weight(name, key string) uint64 {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(name)))
	b = append(append(b, name...), key...)
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:8])
}
