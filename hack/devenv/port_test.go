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
	taken := l.Addr().(*net.TCPAddr).Port
	free, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := choosePort("Milvus", taken, 0); err == nil || !strings.Contains(err.Error(), "stop that program or choose another port") {
		t.Errorf("a taken port asked for: %v, want a sentence that says what to do", err)
	}
	if got, err := choosePort("Milvus", free, 0); err != nil || got != free {
		t.Errorf("a free port asked for: %d, %v, want %d", got, err, free)
	}
	if got, err := choosePort("Milvus", 0, free); err != nil || got != free {
		t.Errorf("the last port, free: %d, %v, want %d again", got, err, free)
	}
	if got, err := choosePort("Milvus", 0, taken); err != nil || got == taken {
		t.Errorf("the last port, taken: %d, %v, want another", got, err)
	}
}

func TestFreePortGivesEachOnce(t *testing.T) {
	t.Parallel()
	seen := map[int]bool{}
	for range 50 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] {
			t.Fatalf("port %d given twice", port)
		}
		seen[port] = true
	}
}
