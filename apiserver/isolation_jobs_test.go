package apiserver

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mnemo-dev/mnemo/internal/account"
	"github.com/mnemo-dev/mnemo/internal/extract"
	"github.com/mnemo-dev/mnemo/internal/importer"
	"github.com/mnemo-dev/mnemo/internal/indexing"
	"github.com/mnemo-dev/mnemo/internal/jobs"
	"github.com/mnemo-dev/mnemo/internal/placement"
	"github.com/mnemo-dev/mnemo/internal/reembed"
	"github.com/mnemo-dev/mnemo/internal/retrieve"
	"github.com/mnemo-dev/mnemo/internal/tenant"
	"github.com/mnemo-dev/mnemo/internal/webhook"
)

// job is the arguments of a job.
type job interface{ Kind() string }

// jobCase returns a job of a stranger that names things of the owner: units are the
// owner's, and at is the location of the stranger's tenant.
type jobCase func(owner, stranger *participant, units []retrieve.UnitID, at placement.Location) job

// jobCases are jobs of each kind.
var jobCases = map[string]jobCase{
	"index.sync": func(_, stranger *participant, units []retrieve.UnitID, _ placement.Location) job {
		return indexing.SyncArgs{Tenant: stranger.Tenant, Units: units}
	},
	"placement.migrate": func(_, stranger *participant, _ []retrieve.UnitID, _ placement.Location) job {
		return indexing.MigrateArgs{Tenant: stranger.Tenant, Run: 1}
	},
	"placement.drop": func(_, _ *participant, _ []retrieve.UnitID, at placement.Location) job {
		return indexing.DropArgsOf(at)
	},
	"chat.import": func(owner, stranger *participant, _ []retrieve.UnitID, _ placement.Location) job {
		return importer.Args{Tenant: stranger.Tenant, User: stranger.User, Import: owner.secrets["$i"]}
	},
	"memory.extract": func(owner, stranger *participant, _ []retrieve.UnitID, _ placement.Location) job {
		return extract.Args{Tenant: stranger.Tenant, User: stranger.User, Extraction: owner.secrets["$f"]}
	},
	"account.purge": func(owner, stranger *participant, _ []retrieve.UnitID, _ placement.Location) job {
		user := owner.User
		if stranger.Tenant == owner.Tenant {
			user = stranger.User
		}
		return account.PurgeArgs{Tenant: stranger.Tenant, User: user, Cutoff: account.PurgeCutoff{Memory: 1 << 60, At: time.Now().Add(time.Hour)}}
	},
	"tenant.purge_user": func(owner, stranger *participant, _ []retrieve.UnitID, _ placement.Location) job {
		return tenant.PurgeUserArgs{Tenant: stranger.Tenant, User: owner.User}
	},
	"tenant.purge": func(_, stranger *participant, _ []retrieve.UnitID, _ placement.Location) job {
		return tenant.PurgeArgs{Tenant: stranger.Tenant}
	},
	"tenant.rebalance": func(_, stranger *participant, _ []retrieve.UnitID, _ placement.Location) job {
		return tenant.RebalanceArgs{Tenant: stranger.Tenant}
	},
	"tenant.finish_deletions": func(_, stranger *participant, _ []retrieve.UnitID, _ placement.Location) job {
		return tenant.FinishDeletionsArgs{Tenant: stranger.Tenant}
	},
	"webhook.deliver": func(_, stranger *participant, _ []retrieve.UnitID, _ placement.Location) job {
		return webhook.Args{Tenant: stranger.Tenant, Webhook: "a"}
	},
	"index.sweep": func(*participant, *participant, []retrieve.UnitID, placement.Location) job {
		return jobs.SweepArgs{}
	},
	"embedding.migrate": func(*participant, *participant, []retrieve.UnitID, placement.Location) job {
		return reembed.Args{}
	},
	"retention": func(*participant, *participant, []retrieve.UnitID, placement.Location) job {
		return jobs.RetentionArgs{}
	},
}

// jobKinds returns the kinds of jobs in the source: the results of all methods Kind that return a string.
func jobKinds(t *testing.T) (kinds []string) {
	t.Helper()
	err := filepath.WalkDir("../internal", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "Kind" || f.Type.Params.NumFields() > 0 || types.ExprString(f.Type.Results.List[0].Type) != "string" {
				continue
			}
			result, ok := f.Body.List[0].(*ast.ReturnStmt)
			if !ok {
				return fmt.Errorf("%s: method Kind must return a constant", path)
			}
			literal, ok := result.Results[0].(*ast.BasicLit)
			if !ok {
				return fmt.Errorf("%s: method Kind must return a constant", path)
			}
			kind, err := strconv.Unquote(literal.Value)
			if err != nil {
				return err
			}
			kinds = append(kinds, kind)
		}
		return nil
	})
	if err != nil || len(kinds) == 0 {
		t.Fatalf("job kinds %v, %v", kinds, err)
	}
	return kinds
}

// isolatesJobs runs a job of every kind with the ids of another user and another tenant.
// None changes the owner's data, nor where it is indexed.
func (x *isolationServer) isolatesJobs(t *testing.T, owner *participant, strangers map[string]*participant) {
	t.Helper()
	kinds := jobKinds(t)
	for kind := range jobCases {
		if !slices.Contains(kinds, kind) {
			t.Errorf("jobCases has %s, which does not exist", kind)
		}
	}
	at, units := x.indexed(t, owner)
	if len(units) == 0 {
		t.Fatal("nothing of the owner is indexed")
	}
	before := x.everything(t, owner)
	for _, kind := range kinds {
		if jobCases[kind] == nil {
			t.Errorf("job kind %s has no case in jobCases", kind)
			continue
		}
		for who, stranger := range strangers {
			theirs, _ := x.indexed(t, stranger)
			if kind == "placement.drop" && theirs == at {
				continue // users of a tenant share its location
			}
			state, err := x.stores.run(t.Context(), jobCases[kind](owner, stranger, units, theirs))
			if err != nil {
				t.Fatalf("%s of %s: %v", kind, who, err)
			}
			if after := x.everything(t, owner); after != before {
				t.Errorf("%s of %s (%s) changed the owner's data:\n%s\nbefore:\n%s", kind, who, state, after, before)
			}
			if _, left := x.indexed(t, owner); !slices.Equal(left, units) {
				t.Errorf("%s of %s (%s): the index has %v of the owner, before %v", kind, who, state, left, units)
			}
			if _, taken := x.indexed(t, stranger); stranger.Tenant != owner.Tenant && kind != "placement.drop" && len(taken) > 0 {
				t.Errorf("%s of %s (%s): the index has %v in their location", kind, who, state, taken)
			}
		}
	}
}

// indexed returns the location of a user's tenant and the units in it.
func (x *isolationServer) indexed(t *testing.T, who *participant) (placement.Location, []retrieve.UnitID) {
	t.Helper()
	at, err := x.stores.db.EnsurePlacement(t.Context(), who.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	units, err := x.stores.index.List(t.Context(), who.Tenant, at, 0, 1000)
	if err != nil {
		return at, nil // dropped
	}
	return at, units
}
