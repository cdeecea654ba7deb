package milvus

import (
	"fmt"
	"io"
	"net"
	"os"
	"testing"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

func TestNetworkForward(t *testing.T) {
	t.Parallel()
	n, err := newNetwork()
	if err != nil {
		t.Fatal(err)
	}
	if n == nil {
		// A container may forbid it even for root.
		t.Logf("user %d is not permitted to create a network namespace", os.Geteuid())
		return
	}
	t.Cleanup(n.close)
	port, err := devenv.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	var inner net.Listener
	n.thread.Do(func() { inner, err = net.Listen("tcp", fmt.Sprintf(":%d", port)) })
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", addr); err == nil {
		conn.Close()
		t.Fatal("the namespace's port is reachable without the relay")
	}
	go func() {
		conn, err := inner.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "hello")
		_ = conn.Close()
	}()
	if err := n.forward(addr); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(conn); err != nil || string(data) != "hello" {
		t.Errorf("read %q, %v through the relay, want hello", data, err)
	}
	n.close()
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("the relay still listens after close")
	}
}
