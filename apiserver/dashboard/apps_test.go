package dashboard

import "testing"

func TestIsLoopback(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:8080": true, "127.1.2.3": true, "localhost": true, "localhost:8080": true, "[::1]:8080": true,
		"mnemo.example.com": false, "localhost.example.com:443": false, "10.0.0.1": false, "[2001:db8::1]:443": false, "": false,
	} {
		if got := isLoopback(host); got != want {
			t.Errorf("isLoopback(%q) = %v, want %v", host, got, want)
		}
	}
}
