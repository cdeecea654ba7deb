package charts_test

import (
	"net/url"
	"path"
	"testing"
)

// TestClientCertificatesReachEveryContainer: every container that connects to PostgreSQL has the certificate of its role.
func TestClientCertificatesReachEveryContainer(t *testing.T) {
	t.Parallel()
	var names []string
	var values []map[string]any
	for _, name := range []string{"external", "managed", "restore", "everything", "unindexed"} {
		v := readValues(t, "testdata/values/"+name+".yaml")
		v = with(with(v, "owner-tls", "postgres", "owner", "certificateSecret"), "app-tls", "postgres", "app", "certificateSecret")
		names, values = append(names, name), append(values, v)
	}
	for i, r := range renderAll(t, "default", values) {
		if r.Error != "" {
			t.Errorf("%s: %s", names[i], r.Error)
		}
		found := 0
		for pod, template := range podSpecs(parse(t, r.Manifests)) {
			containers := append(list(template.at("spec", "containers")), list(template.at("spec", "initContainers"))...)
			for _, container := range containers {
				for variable, secret := range map[string]string{"DATABASE_URL": "app-tls", "DATABASE_DIRECT_URL": "app-tls", "DATABASE_OWNER_URL": "owner-tls"} {
					address := environment(container)[variable]
					if address == "" {
						continue
					}
					found++
					u, err := url.Parse(address)
					if err != nil {
						t.Fatal(err)
					}
					for parameter, name := range map[string]string{"sslcert": "tls.crt", "sslkey": "tls.key"} {
						directory, file := path.Split(u.Query().Get(parameter))
						got := mountedSecret(template, container, path.Clean(directory))
						if got != secret || file != name {
							t.Errorf("%s: %s of container %s in %s is file %q of Secret %q, want %s of %s",
								names[i], parameter, container["name"], pod, file, got, name, secret)
						}
					}
				}
			}
		}
		if found < 4 {
			t.Errorf("%s: %d containers connect to PostgreSQL, want at least 4", names[i], found)
		}
	}
}

// environment returns the variables of a container that have a fixed value.
func environment(container map[string]any) map[string]string {
	all := map[string]string{}
	for _, env := range list(container["env"]) {
		name, _ := env["name"].(string)
		all[name], _ = env["value"].(string)
	}
	return all
}

// mountedSecret returns the name of the Secret whose volume is mounted at a path, readable only by the group of the pod:
// libpq refuses keys that others can read.
func mountedSecret(template object, container map[string]any, mountPath string) string {
	for _, mount := range list(container["volumeMounts"]) {
		for _, volume := range list(template.at("spec", "volumes")) {
			if mount["mountPath"] == mountPath && mount["name"] == volume["name"] && object(volume).at("secret", "defaultMode") == 0o440 {
				name, _ := object(volume).at("secret", "secretName").(string)
				return name
			}
		}
	}
	return ""
}
