package wire

import "testing"

func TestRecords(t *testing.T) {
	one := []byte{23, 3, 3, 0, 2, 'a', 'b'}
	two := append(append([]byte{}, one...), one...)
	for _, c := range []struct {
		name  string
		reads [][]byte
		want  []bool
	}{
		{"one record a read", [][]byte{one, one}, []bool{true, true}},
		{"two in one read", [][]byte{two, one}, []bool{false, true}},
		{"one in two reads", [][]byte{one[:3], one[3:]}, []bool{false, true}},
		{"the next one begun", [][]byte{two[:9], two[9:]}, []bool{false, true}},
		{"its head alone follows", [][]byte{append(append([]byte{}, one...), one[:5]...), one[5:]}, []bool{false, true}},
		{"byte by byte", [][]byte{one[:1], one[1:2], one[2:5], one[5:6], one[6:]}, []bool{false, false, false, false, true}},
		{"no TLS", [][]byte{[]byte("HTTP/1.1 200 OK\r\n"), one}, []bool{false, false}},
	} {
		var r records
		for i, b := range c.reads {
			if got := r.feed(b); got != c.want[i] {
				t.Errorf("%s: read %d: %v", c.name, i, got)
			}
		}
	}
}
