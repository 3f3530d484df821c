package wire

import "testing"

// Heads that come one after the other are read for what each of them says, also where
// it is what the one before says or where that one was wrong.
func TestHeads(t *testing.T) {
	head := func(fields string) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + fields + "\r\n"
	}
	var k heads
	for _, c := range []struct {
		fields, id string
		n          int // of fields; 0: it is wrong
	}{
		{"X-Id: 1\r\n", "1", 2},
		{"X-Id: 1\r\n", "1", 2},
		{"X-Id: 2\r\nX-More: a\r\n", "2", 3},
		{"", "", 1},
		{"X Id: 3\r\n", "", 0},
		{"X Id: 3\r\n", "", 0},
		{"X-Id: 2\r\n", "2", 2},
	} {
		text := []byte(head(c.fields))
		h, err := k.headers(text)
		if (err != nil) != (c.n == 0) || h.Get("X-Id") != c.id || len(h) != c.n || c.n > 0 && h.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%q: %v, %v", c.fields, h, err)
		}
		clear(text) // it belongs to the log
	}
}
