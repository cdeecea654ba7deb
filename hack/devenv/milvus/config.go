package milvus

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/mnemo-dev/mnemo/hack/devenv"
)

// milvusBlank matches a blank in Milvus' configuration template:
// "{{ name }}", "{{ name: default }}" or "{{ name(type): default }}".
var milvusBlank = regexp.MustCompile(`\{\{\s*(\w+)(?:\(\w+\))?\s*(?::\s*([^}]*?))?\s*\}\}`)

// RenderConfig fills the blanks of the template with values, or with their
// defaults. A blank with neither is an error.
func RenderConfig(template string, values map[string]string) (string, error) {
	var missing []string
	out := milvusBlank.ReplaceAllStringFunc(template, func(blank string) string {
		m := milvusBlank.FindStringSubmatch(blank)
		if v, ok := values[m[1]]; ok {
			return v
		}
		if m[2] == "" {
			missing = append(missing, m[1])
		}
		return m[2]
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("the Milvus template requires values for %s", strings.Join(missing, ", "))
	}
	return out, nil
}

// milvusPorts are the ports of a Milvus server by the name of their blank.
// "etcd_peer" belongs to the embedded etcd; "metrics" is set in the environment.
var milvusPorts = []string{
	"proxy_port", "proxy_internal_port", "etcd_port", "root_coord_port", "query_coord_port", "query_node_port",
	"index_coord_port", "index_node_port", "data_coord_port", "data_node_port", "etcd_peer", "metrics",
}

// writeMilvusConfig writes configs/ into dir, the server's working directory.
func writeMilvusConfig(files, dir string, ports map[string]int, authority *devenv.Authority) error {
	template, err := os.ReadFile(filepath.Join(files, "config.yaml.template"))
	if err != nil {
		return fmt.Errorf("read Milvus template: %w", err)
	}
	data := filepath.Join(dir, "data")
	values := map[string]string{
		"etcd_log_level":        "warn",
		"etcd_log_path":         "stderr",
		"etcd_data_dir":         filepath.Join(data, "etcd"),
		"local_storage_dir":     data,
		"rocksmq_data_dir":      filepath.Join(data, "rocksmq"),
		"system_log_path":       `""`,
		"authorization_enabled": "true",
	}
	for name, port := range ports {
		values[name] = strconv.Itoa(port)
	}
	if authority != nil {
		if values["server_pem_path"], values["server_key_path"], err = authority.Server("milvus"); err != nil {
			return err
		}
		values["ca_pem_path"] = authority.File()
		values["tls_mode"] = "1" // without client certificates
	}
	config, err := RenderConfig(string(template), values)
	if err != nil {
		return err
	}
	// The address at which the components reach one another.
	config = strings.ReplaceAll(config, "\n  ip: #", "\n  ip: 127.0.0.1 #")
	glog, err := os.ReadFile(filepath.Join(files, "glog.conf"))
	if err != nil {
		return fmt.Errorf("read Milvus template: %w", err)
	}
	// The embedded etcd ignores etcd_port; its defaults are 2379 and 2380.
	etcd := fmt.Sprintf(`name: default
listen-client-urls: http://127.0.0.1:%[1]d
advertise-client-urls: http://127.0.0.1:%[1]d
listen-peer-urls: http://127.0.0.1:%[2]d
initial-advertise-peer-urls: http://127.0.0.1:%[2]d
initial-cluster: default=http://127.0.0.1:%[2]d
`, ports["etcd_port"], ports["etcd_peer"])
	for _, sub := range []string{"configs", "data", "logs", "run"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return fmt.Errorf("create Milvus directory: %w", err)
		}
	}
	for name, content := range map[string]string{"milvus.yaml": config, "glog.conf": string(glog), "etcd.yaml": etcd} {
		if err := os.WriteFile(filepath.Join(dir, "configs", name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("write Milvus configuration: %w", err)
		}
	}
	return nil
}

// milvusEnv overrides the configuration where its template has no blank.
func milvusEnv(files, dir string, ports map[string]int) []string {
	return []string{
		"DEPLOY_MODE=STANDALONE",
		"METRICS_PORT=" + strconv.Itoa(ports["metrics"]),
		"MILVUS_RUN_DIR=" + filepath.Join(dir, "run"),
		"LD_LIBRARY_PATH=" + filepath.Join(files, "bin"),
		"LOG_LEVEL=warn",
		"ETCD_CONFIG_PATH=" + filepath.Join(dir, "configs", "etcd.yaml"),
		// A strong read waits for the next tick: 100 ms instead of 200. An idle server uses 3 % of a core for
		// its ticks, and 9 % with 20 ms.
		"PROXY_TIMETICKINTERVAL=100",
		// With the default of half an hour every stop hangs.
		"COMMON_GRACEFULSTOPTIMEOUT=3",
		// With the interim index a filtered search silently returns too few results.
		"QUERYNODE_SEGCORE_INTERIMINDEX_ENABLEINDEX=false",
		"COMMON_SECURITY_AUTHORIZATIONENABLED=true",
	}
}

// milvusRuntime is the directory of Milvus' process file if /run is not
// writable. It is not configurable.
const milvusRuntime = "/tmp/milvus"

// shareMilvusRuntime creates that directory before Milvus does, writable for all
// users of the machine. It returns an error if another user has created it with
// access for that user only.
func shareMilvusRuntime() error {
	const forAll = os.ModeSticky | 0o777
	// The directory of another user cannot be changed, and may already be shared.
	if err := os.MkdirAll(milvusRuntime, 0o777); err == nil {
		_ = os.Chmod(milvusRuntime, forAll)
	}
	probe, err := os.CreateTemp(milvusRuntime, "mnemo-")
	if err != nil {
		return fmt.Errorf("%s, the directory of Milvus' process file, belongs to another user: remove it (%w)", milvusRuntime, err)
	}
	_ = probe.Close()
	return os.Remove(probe.Name())
}
