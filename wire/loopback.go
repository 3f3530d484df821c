package wire

import "net"

// loopback is a connected pair of sockets.
func loopback() (a, b *net.TCPConn, err error) {
	ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, nil, err
	}
	defer ln.Close()
	if a, err = net.DialTCP("tcp", nil, ln.Addr().(*net.TCPAddr)); err != nil {
		return nil, nil, err
	}
	if b, err = ln.AcceptTCP(); err != nil {
		a.Close()
		return nil, nil, err
	}
	return a, b, nil
}
