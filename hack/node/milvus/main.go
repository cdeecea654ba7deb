// Command milvus runs a Milvus 2.3 as its first process and gives its root the
// password in COMMON_SECURITY_DEFAULTROOTPASSWORD, as Milvus 2.4 and later do
// themselves: only when the data is new.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: entrypoint milvus run standalone")
		os.Exit(2)
	}
	cmd := exec.Command(os.Args[1], os.Args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "entrypoint:", err)
		os.Exit(126)
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	if password := os.Getenv("COMMON_SECURITY_DEFAULTROOTPASSWORD"); password != "" {
		go setPassword(password)
	}
	_ = cmd.Wait() // ProcessState has the result
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		os.Exit(code)
	}
	os.Exit(1)
}

// setPassword retries until root has the password. The old password is the default
// one on new data and the same one otherwise.
func setPassword(password string) {
	for range 3000 {
		for _, old := range []string{"Milvus", password} {
			if change(old, password) == nil {
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	fmt.Fprintln(os.Stderr, "entrypoint: the password of root is neither the configured nor the default one")
}

// change asks for another password of root. Milvus takes both in base64, as
// JSON has bytes.
func change(from, to string) error {
	body, err := json.Marshal(map[string]any{"username": "root", "oldPassword": []byte(from), "newPassword": []byte(to)})
	if err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPatch, "http://127.0.0.1:9091/api/v1/credential", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	var result struct {
		Error  int    `json:"error_code"`
		Reason string `json:"reason"`
	}
	if err := json.NewDecoder(res.Body).Decode(&result); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK || result.Error != 0 {
		return fmt.Errorf("%s: %s", res.Status, result.Reason)
	}
	return nil
}
