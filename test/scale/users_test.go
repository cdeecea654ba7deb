package scale_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/internal/testkit"
	"github.com/mnemo-dev/mnemo/test/installation"
)

var (
	applicationUsers = flag.String("users", "10,300", "numbers of users of a tenant's application, ascending, that are compared")
	firstWrites      = flag.Int("first-writes", 5, "users whose first and later writes are measured at each number")
)

// userPage is the number of users of a page.
const userPage = 100

// TestApplicationUsers compares a tenant with few and with many users of its application: the first write
// creates the user, the listing has every one of them once, the Tenant counts them, and Kubernetes has the
// same objects.
func TestApplicationUsers(t *testing.T) {
	t.Parallel()
	i := installation.New(t, installation.Options{})
	i.Operate(t, "MNEMO_MAX_QUOTA_USERS=1000000")
	key := application{url: i.Serve(t).URL}
	tn := i.Tenant("shop", "alice")
	tn.Spec.Quota.Users, tn.Spec.Quota.RequestsPerMinute = new(int64(1_000_000)), new(int64(1_000_000))
	tn.Spec.Applications = []v1alpha1.TenantApplication{{Name: "backend", Scopes: []v1alpha1.ApplicationScope{"read", "write", "admin"}}}
	i.MustCreate(t, tn)
	installation.Eventually(t, installation.Patience, func() string {
		if ready(t, i) != 1 {
			return "the Tenant is not ready"
		}
		return ""
	})
	secret := &corev1.Secret{}
	if err := i.Get(t.Context(), client.ObjectKey{Namespace: i.Namespace, Name: "shop-backend-key"}, secret); err != nil {
		t.Fatal(err)
	}
	key.token = string(secret.Data["token"])
	before := objects(t, i)
	created := 0
	for text := range strings.SplitSeq(*applicationUsers, ",") {
		count, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		fillUsers(t, i, count)
		compareWrites(t, key, count)
		created += *firstWrites
		listUsers(t, key, count+created)
		installation.Eventually(t, *patience, func() string {
			if err := i.Get(t.Context(), client.ObjectKeyFromObject(tn), tn); err != nil {
				return err.Error()
			}
			if used := tn.Status.Usage.Users.Used; used != int64(count+created+1) { // and alice
				return fmt.Sprintf("the status has %d users, want %d", used, count+created+1)
			}
			return ""
		})
		if diff := cmp.Diff(before, objects(t, i)); diff != "" {
			t.Errorf("objects of Kubernetes with %d users (-none +many):\n%s", count, diff)
		}
	}
	t.Logf("%d objects of Kubernetes: %s", len(before), strings.Join(before, ", "))
}

// fillUsers adds users to the tenant until it has count, as first writes do, without one transaction each.
func fillUsers(t *testing.T, i *installation.Installation, count int) {
	t.Helper()
	for _, statement := range []string{
		"alter table users disable trigger count_insert", // it would update one row for each user
		fmt.Sprintf(`insert into users (tenant_id, name, kind) select id, 'app-user-' || lpad(n::text, 7, '0'), 'application_user'
			from tenants, generate_series(1, %d) n on conflict do nothing`, count),
		"update usage set application_users = (select count(*) from users where kind = 'application_user')",
		"alter table users enable trigger count_insert",
	} {
		if _, err := i.Owner.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// compareWrites measures the first and a later write of new users.
func compareWrites(t *testing.T, key application, count int) {
	t.Helper()
	var first, later []time.Duration
	for n := range *firstWrites {
		user := fmt.Sprintf("new-%d-%07d", count, n)
		first = append(first, key.create(t, user, fmt.Sprintf("likes tea%d", n)))
		later = append(later, key.create(t, user, fmt.Sprintf("likes coffee%d", n)))
	}
	t.Logf("%d users: first write %v, later write %v (medians of %d): ratio %.2f", count, median(first), median(later), *firstWrites,
		float64(median(first))/float64(median(later)))
}

// listUsers lists all users in pages, and reads the last one.
func listUsers(t *testing.T, key application, count int) {
	t.Helper()
	var names []string
	var took []time.Duration
	for after := "*"; after != ""; { // the first of all characters in a name here
		var page struct {
			Users []struct{ User string }
			Next  string
		}
		took = append(took, key.do(t, http.MethodGet, fmt.Sprintf("/api/users?count=%d&after=%s", userPage, after), "", nil, &page))
		for _, u := range page.Users {
			names = append(names, u.User)
		}
		after = page.Next
	}
	if len(names) != count || !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != count {
		t.Errorf("%d users are listed, want each of %d once and in order", len(names), count)
	}
	one := key.do(t, http.MethodGet, "/api/users/"+names[len(names)-1], "", nil, nil)
	t.Logf("%d users: listed in %d pages of %d, first %v, median %v, slowest %v; the last user alone in %v", count, len(took), userPage, took[0], median(took), slices.Max(took), one)
}

// objects returns the kinds and names of all objects in the installation's namespace, except events and leases.
func objects(t *testing.T, i *installation.Installation) (names []string) {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(testkit.KubeConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	resources, err := d.ServerPreferredNamespacedResources()
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range resources {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range group.APIResources {
			if r.Kind == "Event" || r.Kind == "Lease" || !slices.Contains(r.Verbs, "list") {
				continue
			}
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(version.WithKind(r.Kind + "List"))
			if err := i.List(t.Context(), list, client.InNamespace(i.Namespace)); err != nil {
				t.Fatal(err)
			}
			for _, o := range list.Items {
				names = append(names, r.Kind+"/"+o.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// application calls the API with the key of an application.
type application struct{ url, token string }

func (a application) create(t *testing.T, user, text string) time.Duration {
	t.Helper()
	return a.do(t, http.MethodPost, "/api/memory", user, map[string]string{"text": text}, nil)
}

// do sends a request that must succeed, decodes the response into out, and returns the time until it was read.
func (a application) do(t *testing.T, method, path, user string, body, out any) time.Duration {
	t.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, a.url+path, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Content-Type", "application/json")
	if user != "" {
		request.Header.Set("X-Mnemo-User", user)
	}
	began := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	took := time.Since(began)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s, %v\n%.500s", method, path, response.Status, err, raw)
	}
	if out != nil {
		if err := json.Unmarshal(raw, out); err != nil {
			t.Fatal(err)
		}
	}
	return took.Round(10 * time.Microsecond)
}

func median(of []time.Duration) time.Duration { return slices.Sorted(slices.Values(of))[len(of)/2] }
