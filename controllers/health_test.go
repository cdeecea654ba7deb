package controllers_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mnemo-dev/mnemo/api/v1alpha1"
	"github.com/mnemo-dev/mnemo/controllers"
	"github.com/mnemo-dev/mnemo/internal/fault"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

// The health statuses of Argo CD.
const (
	healthy     = "Healthy"
	progressing = "Progressing"
	degraded    = "Degraded"
	suspended   = "Suspended"
)

// tenantState is a state of a Tenant and its health for GitOps tools. arrange
// brings the Tenant acme into it.
type tenantState struct {
	name    string
	arrange func(t *testing.T, e *env)
	kstatus status.Status
	argoCD  string
}

// tenantStates contains every reason of every condition. docs/gitops.md has the
// same table.
var tenantStates = []tenantState{
	{"created, not observed", func(t *testing.T, e *env) { e.mustCreate(t, e.newTenant("alice")) }, status.InProgressStatus, progressing},
	{"Ready", func(t *testing.T, e *env) { e.expectReady(t, e.newTenant("alice")) }, status.CurrentStatus, healthy},
	{"in no index", func(t *testing.T, e *env) {
		e.noIndex(t, true)
		e.expectReady(t, e.newTenant("alice"))
	}, status.CurrentStatus, healthy},
	{"changed, not observed", func(t *testing.T, e *env) {
		e.expectReady(t, e.newTenant("alice"))
		e.mustUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.DisplayName = "Acme GmbH" })
	}, status.InProgressStatus, progressing},
	{"suspended", func(t *testing.T, e *env) {
		tn := e.newTenant("alice")
		tn.Spec.Suspended = true
		e.expectReady(t, tn)
	}, status.CurrentStatus, healthy},
	{"paused before it was observed", func(t *testing.T, e *env) {
		tn := e.newTenant("alice")
		tn.Annotations = map[string]string{v1alpha1.AnnotationPaused: "true"}
		e.arrangeTenant(t, tn)
	}, status.InProgressStatus, suspended},
	{"paused while Ready", func(t *testing.T, e *env) {
		e.expectReady(t, e.newTenant("alice"))
		e.arrangeUpdate(t, func(tn *v1alpha1.Tenant) { tn.Annotations = map[string]string{v1alpha1.AnnotationPaused: "true"} })
	}, status.CurrentStatus, suspended},
	{"adoption required", func(t *testing.T, e *env) {
		e.arrangeRetained(t)
		tn := e.newTenant("alice")
		tn.Spec.Adoption.Policy = v1alpha1.AdoptNever
		e.arrangeTenant(t, tn)
	}, status.FailedStatus, degraded},
	{"adoption refused", func(t *testing.T, e *env) {
		e.reassign(t, e.arrangeRetained(t), "an earlier namespace")
		e.arrangeTenant(t, e.newTenant("alice"))
	}, status.FailedStatus, degraded},
	{"name in use", func(t *testing.T, e *env) {
		if _, err := e.store.Apply(t.Context(), otherSpec(e.ns, "acme")); err != nil {
			t.Fatal(err)
		}
		e.arrangeTenant(t, e.newTenant("alice"))
	}, status.InProgressStatus, progressing},
	{"name being purged", func(t *testing.T, e *env) {
		if _, err := e.store.Retire(t.Context(), tenant.ID(e.arrangeRetained(t)), tenant.Delete); err != nil {
			t.Fatal(err)
		}
		e.arrangeTenant(t, e.newTenant("alice"))
	}, status.InProgressStatus, progressing},
	{"Secret conflict", func(t *testing.T, e *env) {
		e.mustCreate(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.ns, Name: "acme-alice-access"}})
		e.arrangeTenant(t, e.newTenant("alice"))
	}, status.FailedStatus, degraded},
	{"PostgreSQL unavailable", func(t *testing.T, e *env) { e.arrangeFailing(t, errPostgresUnavailable, "Apply") }, status.InProgressStatus, progressing},
	{"Milvus unavailable", func(t *testing.T, e *env) { e.arrangeFailing(t, errMilvusUnavailable, "Ensure") }, status.InProgressStatus, progressing},
	{"Milvus loading", func(t *testing.T, e *env) { e.arrangeFailing(t, placement.ErrLoading, "Ensure") }, status.InProgressStatus, progressing},
	{"internal error", func(t *testing.T, e *env) { e.arrangeFailing(t, fault.New(fault.Internal, "bug"), "Apply") }, status.InProgressStatus, progressing},
	{"migrating between placements", func(t *testing.T, e *env) {
		e.expectReady(t, e.newTenant("alice"))
		e.arrangeUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Isolation = v1alpha1.Shared })
	}, status.InProgressStatus, progressing},
	{"cell not found", func(t *testing.T, e *env) {
		e.useCells(t)
		e.arrangePlacement(t)
	}, status.FailedStatus, degraded},
	{"cell full", func(t *testing.T, e *env) {
		e.useCells(t)
		if err := e.store.ApplyCell(t.Context(), placement.Cell{Name: "eu-a", Region: "eu", Cordoned: true}); err != nil {
			t.Fatal(err)
		}
		e.arrangePlacement(t)
	}, status.FailedStatus, degraded},
	{"cells not enabled", func(t *testing.T, e *env) { e.arrangePlacement(t) }, status.FailedStatus, degraded},
	{"migrating to another embedding model", func(t *testing.T, e *env) {
		tn := e.expectReady(t, e.newTenant("alice"))
		e.store.embed(tenant.ID(tn.Status.ID), "next-model")
		e.expectReconciled(t)
	}, status.CurrentStatus, healthy},
	{"rebuilding the index", func(t *testing.T, e *env) {
		tn := e.expectReady(t, e.newTenant("alice"))
		e.store.fill(tenant.ID(tn.UID), 5, 0)
		e.store.index.LosePartition(placementOf(tn))
		e.expectReconciled(t)
	}, status.InProgressStatus, progressing},
	{"OIDC domain not assigned", func(t *testing.T, e *env) { e.arrangeOIDC(t, "acme.test") }, status.CurrentStatus, healthy},
	{"OIDC domain conflict", func(t *testing.T, e *env) {
		e.annotateNamespace(t, v1alpha1.AnnotationOIDCDomains, "acme.test")
		e.arrangeDomain(t, "acme.test")
		e.arrangeOIDC(t, "acme.test")
	}, status.CurrentStatus, healthy},
	{"OIDC without domains", func(t *testing.T, e *env) { e.arrangeOIDC(t) }, status.CurrentStatus, healthy},
	{"webhook not connected yet", func(t *testing.T, e *env) { e.arrangeTenant(t, e.newTenantWithWebhook()) }, status.CurrentStatus, healthy},
	{"webhook failing", func(t *testing.T, e *env) {
		e.expectReady(t, e.newTenantWithWebhook())
		w := e.webhook(t)
		w.Attempts, w.FailingSince, w.Message = webhook.FailingAttempts, time.Now(), "status 500"
		e.store.saveWebhook(e.id(t), w)
		e.expectReconciled(t)
	}, status.CurrentStatus, healthy},
	{"webhooks not enabled", func(t *testing.T, e *env) {
		e.use(t, controllers.Config{WebhooksDisabled: true})
		e.arrangeTenant(t, e.newTenantWithWebhook())
	}, status.CurrentStatus, healthy},
	{"generation lowered", func(t *testing.T, e *env) {
		tn := e.newTenant("alice")
		tn.Spec.Users[0].TokenGeneration = 2
		e.expectReady(t, tn)
		e.arrangeUpdate(t, func(tn *v1alpha1.Tenant) { tn.Spec.Users[0].TokenGeneration = 1 })
	}, status.CurrentStatus, healthy},
	{"quota above the platform's maximum", func(t *testing.T, e *env) {
		e.arrangeMaximum(t, func(maximum *tenant.Quota) { maximum.Memories = 5 })
		tn := e.newTenant("alice")
		tn.Spec.Quota.Memories = new(int64(6))
		e.arrangeTenant(t, tn)
	}, status.CurrentStatus, healthy},
	{"more users than the platform's maximum", func(t *testing.T, e *env) {
		e.arrangeMaximum(t, func(maximum *tenant.Quota) { maximum.Users = 1 })
		e.arrangeTenant(t, e.newTenant("alice", "bob"))
	}, status.FailedStatus, degraded},
	{"deletion prevented", func(t *testing.T, e *env) {
		tn := e.newTenant("alice")
		tn.Spec.PreventDeletion = true
		e.arrangeDeletion(t, e.expectReady(t, tn))
	}, status.TerminatingStatus, progressing},
	{"purging", func(t *testing.T, e *env) { e.arrangeDeletion(t, e.readyWithData(t, v1alpha1.Delete)) }, status.TerminatingStatus, progressing},
}

// TestHealthOfEveryTenantState compares kstatus, which Flux, kpt and others
// compute, with Argo CD's health, from config/argocd/health.lua.
func TestHealthOfEveryTenantState(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]bool{}
	t.Cleanup(func() { // after the states
		for _, reason := range reasons(t) {
			if !seen[reason] {
				t.Errorf("no state has a condition with reason %s: add it to tenantStates", reason)
			}
		}
	})
	for _, state := range tenantStates {
		t.Run(state.name, func(t *testing.T) {
			t.Parallel()
			e := setup(t)
			state.arrange(t, e)
			e.expectKstatus(t, state.kstatus)
			e.expectArgoCDHealth(t, state.argoCD)
			mu.Lock()
			defer mu.Unlock()
			for _, c := range e.tenant(t).Status.Conditions {
				seen[c.Reason] = true
			}
		})
	}
}

// TestHealthIsDocumented checks the table and the script in docs/gitops.md.
func TestHealthIsDocumented(t *testing.T) {
	t.Parallel()
	docs := readFile(t, "../docs/gitops.md")
	var table strings.Builder
	for _, s := range tenantStates {
		fmt.Fprintf(&table, "| %s | `%s` | `%s` |\n", s.name, s.kstatus, s.argoCD)
	}
	if !strings.Contains(docs, table.String()) {
		t.Errorf("docs/gitops.md must contain this table:\n%s", table.String())
	}
	script := "    " + strings.ReplaceAll(strings.TrimSpace(readFile(t, healthScript)), "\n", "\n    ")
	if !strings.Contains(docs, strings.ReplaceAll(script, "\n    \n", "\n\n")) {
		t.Errorf("docs/gitops.md must contain %s, indented by 4 spaces", healthScript)
	}
}

const healthScript = "../config/argocd/health.lua"

// expectArgoCDHealth runs the script as Argo CD does: with the libraries package,
// base and table only.
func (e *env) expectArgoCDHealth(t *testing.T, want string) {
	t.Helper()
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		l.Push(l.NewFunction(open))
		l.Push(lua.LString(name))
		l.Call(1, 0)
	}
	l.SetGlobal("obj", toLua(l, e.unstructured(t).Object))
	if err := l.DoString(readFile(t, healthScript)); err != nil {
		t.Fatalf("%s: %v", healthScript, err)
	}
	health, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("%s returned %s, want a table", healthScript, l.Get(-1).Type())
	}
	if got := health.RawGetString("status").String(); got != want {
		t.Errorf("Argo CD's health is %s (%s), want %s", got, health.RawGetString("message"), want)
	}
	if health.RawGetString("message").String() == "" {
		t.Error("Argo CD's health has no message")
	}
}

func toLua(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case map[string]any:
		table := l.NewTable()
		for key, value := range v {
			table.RawSetString(key, toLua(l, value))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, value := range v {
			table.Append(toLua(l, value))
		}
		return table
	case string:
		return lua.LString(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case bool:
		return lua.LBool(v)
	}
	return lua.LNil
}

// unstructured returns the Tenant acme as a client without our types reads it.
func (e *env) unstructured(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Tenant"))
	if err := e.Get(t.Context(), client.ObjectKey{Namespace: e.ns, Name: "acme"}, object); err != nil {
		t.Fatalf("get tenant: %v", err)
	}
	return object
}

// reasons returns the values of the constants of api/v1alpha1 named Reason….
func reasons(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../api/v1alpha1/conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			t.Fatalf("%s is not a literal", spec.Names[0].Name)
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, value)
		return true
	})
	if len(all) < 20 {
		t.Fatalf("%d reasons in api/v1alpha1/conditions.go, want at least 20", len(all))
	}
	return all
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// arrangeTenant creates the Tenant and reconciles it once.
func (e *env) arrangeTenant(t *testing.T, tn *v1alpha1.Tenant) {
	t.Helper()
	e.mustCreate(t, tn)
	e.expectReconciled(t)
}

// arrangePlacement creates a Tenant that requests a region and reconciles it once.
func (e *env) arrangePlacement(t *testing.T) {
	t.Helper()
	tn := e.newTenant("alice")
	tn.Spec.Placement = &v1alpha1.TenantPlacementRequest{Region: "eu"}
	e.arrangeTenant(t, tn)
}

// arrangeUpdate changes the Tenant and reconciles it once.
func (e *env) arrangeUpdate(t *testing.T, change func(*v1alpha1.Tenant)) {
	t.Helper()
	e.mustUpdate(t, change)
	e.expectReconciled(t)
}

// arrangeMaximum lowers the platform's maximum.
func (e *env) arrangeMaximum(t *testing.T, lower func(*tenant.Quota)) {
	t.Helper()
	maximum := tenant.DefaultQuota()
	lower(&maximum)
	e.use(t, controllers.Config{Maximum: maximum})
}

// arrangeRetained retains the data of a deleted Tenant acme.
func (e *env) arrangeRetained(t *testing.T) types.UID {
	t.Helper()
	tn := e.readyWithData(t, v1alpha1.Retain)
	e.mustDelete(t, tn)
	e.expectReconciled(t)
	return tn.UID
}

// arrangeFailing creates a Tenant for which a method of the stores fails.
func (e *env) arrangeFailing(t *testing.T, err error, method string) {
	t.Helper()
	e.mustCreate(t, e.newTenant("alice"))
	e.store.fail(err, method)
	_, _ = e.reconcile(t) // returns the error, except while loading
}

func (e *env) arrangeDomain(t *testing.T, domain string) {
	t.Helper()
	other := otherSpec("elsewhere", "first")
	other.OIDC = tenant.OIDC{Issuer: "https://id.test", Domains: []string{domain}}
	if _, err := e.store.Apply(t.Context(), other); err != nil {
		t.Fatal(err)
	}
}

func (e *env) arrangeOIDC(t *testing.T, domains ...string) {
	t.Helper()
	tn := e.newTenant("alice")
	tn.Spec.OIDC = &v1alpha1.TenantOIDC{Issuer: "https://id.test", EmailDomains: domains}
	e.arrangeTenant(t, tn)
}

func (e *env) arrangeDeletion(t *testing.T, tn *v1alpha1.Tenant) {
	t.Helper()
	e.mustDelete(t, tn)
	e.expectReconciled(t)
}
