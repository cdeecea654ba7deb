package olm

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Secret with an environment variable per setting, one with those of the migration, and one with files such as
// certificates. Users of the bundle create them.
const (
	configSecret = "mnemo-config"
	ownerSecret  = "mnemo-owner"
	filesSecret  = "mnemo-files"
	filesPath    = "/etc/mnemo/files"
)

// fixedSettings follow from the bundle. The Secret has all other settings, whose defaults in the program are those of the chart
// (TestDefaultsAreThoseOfChart in cmd/mnemo).
var fixedSettings = []string{"MNEMO_LEADER_ELECT", "MNEMO_LEADER_ELECTION_NAMESPACE", "MNEMO_MODEL_DIR", "MNEMO_MIGRATE_WAIT_TIMEOUT", "MNEMO_USAGE_DIR"}

// serviceVersion returns the ClusterServiceVersion: config/olm/csv.yaml with everything that follows from the chart,
// the CRD and the version.
func (s Source) serviceVersion(objects *rendered) (map[string]any, error) {
	var csv unstructured.Unstructured
	if err := s.read("config/olm/csv.yaml", &csv.Object); err != nil {
		return nil, err
	}
	kubeVersion, err := s.minKubeVersion()
	if err != nil {
		return nil, err
	}
	var example map[string]any
	if err := s.read("config/samples/tenant.yaml", &example); err != nil {
		return nil, err
	}
	examples, err := json.Marshal([]any{example})
	if err != nil {
		return nil, fmt.Errorf("write example: %w", err)
	}
	icon, err := s.icon()
	if err != nil {
		return nil, err
	}
	program := objects.migration.Spec.Template.Spec.Containers[0].Image
	csv.SetName("mnemo.v" + s.Version)
	csv.SetLabels(s.supportedPlatforms())
	annotations := csv.GetAnnotations()
	annotations["alm-examples"] = string(examples)
	annotations["containerImage"] = program
	annotations["olm.skipRange"] = "<" + s.Version // every earlier schema can be migrated
	csv.SetAnnotations(annotations)
	spec, _ := csv.Object["spec"].(map[string]any)
	spec["version"] = s.Version
	spec["minKubeVersion"] = kubeVersion
	spec["icon"] = []any{map[string]any{"base64data": base64.StdEncoding.EncodeToString(icon), "mediatype": "image/svg+xml"}}
	spec["customresourcedefinitions"] = map[string]any{"owned": []any{describe(objects.definition)}}
	spec["relatedImages"] = []any{map[string]any{"name": "mnemo", "image": program}}
	spec["install"] = map[string]any{"strategy": "deployment", "spec": installation(objects)}
	return csv.Object, nil
}

// minKubeVersion returns the oldest version of Kubernetes that the chart supports.
func (s Source) minKubeVersion() (string, error) {
	var chart struct {
		KubeVersion string `json:"kubeVersion"`
	}
	err := s.read("charts/mnemo/Chart.yaml", &chart)
	return strings.TrimSuffix(strings.TrimPrefix(chart.KubeVersion, ">="), "-0"), err
}

// supportedPlatforms are labels by which catalogs select bundles.
func (s Source) supportedPlatforms() map[string]string {
	labels := map[string]string{"operatorframework.io/os.linux": "supported"}
	for _, arch := range s.Arches {
		labels["operatorframework.io/arch."+arch] = "supported"
	}
	return labels
}

// installation returns the Deployments and the permissions of their accounts. OLM creates an account for each entry of
// permissions, so that of the API server, which has none, is listed too.
func installation(o *rendered) map[string]any {
	operator := o.role.Name // that of its account
	permissions := []any{map[string]any{"serviceAccountName": operator, "rules": o.role.Rules}}
	var deployments []any
	for _, d := range o.deployments {
		account := d.Spec.Template.Spec.ServiceAccountName
		if account == operator {
			addMigration(&d, o.migration.Spec.Template.Spec.Containers[0])
		} else {
			permissions = append(permissions, map[string]any{"serviceAccountName": account, "rules": []rbacv1.PolicyRule{}})
		}
		readSecrets(&d.Spec.Template.Spec)
		deployments = append(deployments, map[string]any{"name": d.Name, "label": d.Labels, "spec": d.Spec})
	}
	return map[string]any{
		"clusterPermissions": []any{map[string]any{"serviceAccountName": operator, "rules": o.clusterRole.Rules}},
		"permissions":        permissions,
		"deployments":        deployments,
	}
}

// addMigration adds the migration as the first init container, because OLM runs no Jobs. Of several replicas, one migrates
// and the others wait.
func addMigration(d *appsv1.Deployment, migrate corev1.Container) {
	pod := &d.Spec.Template.Spec
	pod.InitContainers = slices.Insert(pod.InitContainers, 0, migrate)
}

// readSecrets replaces the settings of all containers by the Secrets.
func readSecrets(pod *corev1.PodSpec) {
	optional := true
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "files", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: filesSecret, Optional: &optional},
	}})
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			c := &containers[i]
			secret := configSecret
			if c.Name == "migrate" {
				secret = ownerSecret
			}
			c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return !slices.Contains(fixedSettings, e.Name) })
			c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}}}
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "files", MountPath: filesPath, ReadOnly: true})
		}
	}
}
