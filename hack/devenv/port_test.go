package devenv

import (
	"net"
	"strings"
	"testing"
)

func TestChoosePort(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	used := l.Addr().(*net.TCPAddr).Port
	free, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := choosePort("Milvus", used, 0); err == nil || !strings.Contains(err.Error(), "stop that program or choose another port") {
		t.Errorf("requested port in use: error %v, want one that says what to do", err)
	}
	if got, err := choosePort("Milvus", free, 0); err != nil || got != free {
		t.Errorf("requested port free: %d, %v, want %d", got, err, free)
	}
	if got, err := choosePort("Milvus", 0, free); err != nil || got != free {
		t.Errorf("previous port free: %d, %v, want %d", got, err, free)
	}
	if got, err := choosePort("Milvus", 0, used); err != nil || got == used {
		t.Errorf("previous port in use: %d, %v, want another port", got, err)
	}
}

func TestFreePortIsUnique(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 50 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] {
			t.Fatalf("port %d allocated twice", port)
		}
		seen[port] = true
	}
}
