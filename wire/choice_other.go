//go:build !linux

package wire

func fastUnfit(bool) string { return "this system has no epoll" }

func openFast(Clock) Transport { panic("wire: there is no fast transport on this system") }
