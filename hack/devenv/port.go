package devenv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports are taken from below the range the kernel gives to outgoing
// connections, so that none of those takes the port of a program that is being
// restarted.
const (
	lowestPort  = 20000
	highestPort = 32000
)

var ports = struct {
	sync.Mutex
	given map[int]bool
}{given: map[int]bool{}}

// FreePort returns a port nobody listens on and that this program has not given
// out before.
func FreePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	for range 1000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if !ports.given[port] && portFree(port) {
			ports.given[port] = true
			return port, nil
		}
	}
	return 0, errors.New("no free TCP port between 20000 and 32000: stop some of the programs that listen there")
}

// portFree tells whether a port can be listened on, on every address.
func portFree(port int) bool {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// choosePort returns the port to use: the one asked for, else the one used the
// last time if it is still free, else a free one. It fails when the port asked
// for is taken.
func choosePort(what string, asked, last int) (int, error) {
	if asked != 0 {
		if !portFree(asked) {
			return 0, fmt.Errorf("port %d for %s is taken by another program: stop that program or choose another port", asked, what)
		}
		return asked, nil
	}
	if last != 0 && portFree(last) {
		return last, nil
	}
	return FreePort()
}
