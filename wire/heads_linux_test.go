package wire

import (
	"reflect"
	"testing"
)

// Heads that are alike are read once; one that is not, or is wrong, is read anew.
func TestHeadsAreReadOnce(t *testing.T) {
	const first, second = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Id: 1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Id: 2\r\n\r\n"
	var k heads
	var maps []uintptr
	for _, c := range []struct{ text, id string }{{first, "1"}, {first, "1"}, {second, "2"}, {"HTTP/1.1 200 OK\r\nX Id: 3\r\n\r\n", ""}, {second, "2"}, {first, "1"}} {
		text := []byte(c.text)
		h, err := k.headers(text)
		if (err != nil) != (c.id == "") || h.Get("X-Id") != c.id {
			t.Errorf("%q: %v, %v", c.text, h, err)
		}
		clear(text) // it belongs to the log
		maps = append(maps, reflect.ValueOf(h).Pointer())
	}
	if maps[0] != maps[1] || maps[2] != maps[4] || maps[0] == maps[2] || maps[5] == maps[2] {
		t.Errorf("the maps are %x", maps)
	}
}
