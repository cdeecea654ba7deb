package devenv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports are below the kernel's ephemeral range, so an outgoing connection cannot
// occupy the port of a program that is being restarted.
const (
	lowestPort  = 20000
	highestPort = 32000
)

var ports = struct {
	sync.Mutex
	allocated map[int]bool
}{allocated: map[int]bool{}}

// FreePort returns a port that is not in use and that this process has not
// allocated before.
func FreePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	for range 1000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if !ports.allocated[port] && portFree(port) {
			ports.allocated[port] = true
			return port, nil
		}
	}
	return 0, errors.New("no free TCP port between 20000 and 32000: stop some of the programs that listen there")
}

// portFree reports whether a program can listen on a port of every address.
func portFree(port int) bool {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// choosePort implements Settings.ChoosePort; previous is 0 if there was no port.
func choosePort(owner string, requested, previous int) (int, error) {
	if requested != 0 {
		if !portFree(requested) {
			return 0, fmt.Errorf("port %d for %s is in use by another program: stop that program or choose another port", requested, owner)
		}
		return requested, nil
	}
	if previous != 0 && portFree(previous) {
		return previous, nil
	}
	return FreePort()
}
