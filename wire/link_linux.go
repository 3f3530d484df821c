package wire

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// A link is a connection.
type link struct {
	id     uint64 // place in links, and how often that was used
	fd     int
	peer   *peer
	call   *call // nil while it is kept
	addr   int16 // which of the peer's addresses
	kept   bool  // it has served a call before
	behind bool  // a read left data in the socket
	sent   uint32
	segs   segments
	stood  int64 // when it was connected; 0 before
	at     int64 // latest stamp
	lo     int64 // the queue was empty then or later
}

// A pool holds a peer's kept connections, the last used one last.
type pool struct{ links []*link }

// takeKept is a kept connection to p that still stands; nil if there is none.
func (l *loop) takeKept(p *peer) *link {
	pool := l.pools[p]
	if pool == nil {
		return nil
	}
	for n := len(pool.links); n > 0; n = len(pool.links) {
		k := pool.links[n-1]
		pool.links = pool.links[:n-1]
		if k.peer == p && k.fd >= 0 && k.call == nil && k.kept {
			return k
		}
	}
	return nil
}

// connect opens a new connection for a call, to the peer's address number addr or
// one after that.
func (l *loop) connect(c *call, addr int) {
	c.state = connecting
	for {
		a := &c.to.addrs[addr]
		fd, _, errno := openSocket(a)
		if errno == 0 && isSpare(fd) {
			closeSocket(fd)
			errno = unix.EMFILE
		}
		if errno == 0 {
			l.attach(c, fd, addr)
			return
		}
		if addr++; addr == len(c.to.addrs) || isNoRoom(errno) {
			l.fail(c, dialError(a, errno))
			return
		}
	}
}

func dialError(a *address, errno unix.Errno) error {
	return orNoRoom(&net.OpError{Op: "dial", Net: "tcp", Addr: a.net, Err: os.NewSyscallError("connect", errno)})
}

// attach makes fd the connection of a call, and sends if it stands already.
func (l *loop) attach(c *call, fd, addr int) {
	k := l.newLink()
	k.fd, k.peer, k.addr, k.call, c.link = fd, c.to, int16(addr), c, k
	l.engage(c, 1)
	l.opening++
	l.opened.Add(1)
	if l.stamps.receive {
		_ = askForStamps(fd, l.stamps.transmit) // without them stamps are user time
	}
	if errno := watchSocket(l.epoll, fd, k.id); errno != 0 {
		l.fail(c, &ErrNoRoom{os.NewSyscallError("epoll_ctl", errno)})
		return
	}
	l.push(k)
}

// tryNext tries the peer's next address where a connection could not be made.
func (l *loop) tryNext(c *call, errno unix.Errno) {
	addr := int(c.link.addr)
	l.release(c, false)
	if addr+1 < len(c.to.addrs) && !isNoRoom(errno) {
		l.connect(c, addr+1)
		return
	}
	l.fail(c, dialError(&c.to.addrs[addr], errno))
}

// anew sends a call again, on a new connection, where a kept one turns out to be
// closed before a byte of the answer came. Some servers close after each stream
// although they promise to keep the connection, and whoever asks at once loses that
// race. On a new connection nothing is sent twice.
func (l *loop) anew(c *call) bool {
	if !c.link.kept || c.reads > 0 || c.again {
		return false
	}
	l.release(c, false)
	c.again, c.told, c.wrote = true, false, 0
	c.result = Result{}
	l.connect(c, 0)
	return true
}

func (l *loop) newLink() *link {
	if n := len(l.vacant); n > 0 {
		k := l.vacant[n-1]
		l.vacant = l.vacant[:n-1]
		*k = link{id: k.id + 1<<32}
		return k
	}
	k := &link{id: uint64(len(l.links))}
	l.links = append(l.links, k)
	return k
}

// release takes the connection from its call and keeps it, if it may be used again.
func (l *loop) release(c *call, keep bool) {
	k := c.link
	if k == nil {
		return
	}
	c.link, k.call = nil, nil
	l.engage(c, -1)
	if k.stood == 0 {
		l.opening--
	}
	if !keep {
		l.drop(k)
		return
	}
	k.kept, k.behind = true, false
	p := l.pools[k.peer]
	if p == nil {
		p = &pool{}
		l.pools[k.peer] = p
	}
	p.links = append(p.links, k)
}

// drop closes a connection.
func (l *loop) drop(k *link) {
	closeSocket(k.fd)
	k.fd, k.call = -1, nil
	l.vacant = append(l.vacant, k)
}
