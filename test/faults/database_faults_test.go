package faults_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// triggers let PostgreSQL refuse commits and writes. The faults are a row, which every
// session sees.
const triggers = `
create table fault_injection (fail_commit text not null default '', fail_write text not null default '');
insert into fault_injection default values;
create function fail_commit() returns trigger language plpgsql security definer as $$
declare code text := (select fail_commit from public.fault_injection);
begin
	if code <> '' and random() < 0.3 then raise exception 'injected' using errcode = code; end if;
	return null;
end $$;
create function fail_write() returns trigger language plpgsql security definer as $$
declare code text := (select fail_write from public.fault_injection);
begin
	if code <> '' then raise exception 'injected' using errcode = code; end if;
	return new;
end $$;
create constraint trigger fail_commit after insert or update on usage deferrable initially deferred for each row execute function fail_commit();
create constraint trigger fail_commit after insert or update on conversations deferrable initially deferred for each row execute function fail_commit();
create constraint trigger fail_commit after insert on river_job deferrable initially deferred for each row execute function fail_commit();
create trigger fail_write before insert on memories for each row execute function fail_write();
create trigger fail_write before insert on messages for each row execute function fail_write();
create trigger fail_write before insert on import_chunks for each row execute function fail_write();`

func (s *stack) installTriggers(t testing.TB) {
	t.Helper()
	if _, err := s.Owner.Exec(t.Context(), triggers); err != nil {
		t.Fatal(err)
	}
}

// set sets the error code of a trigger. PostgreSQL may be unavailable at the moment.
func (n *injector) set(column, code string) func() {
	exec := func(value string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_, err := n.Owner.Exec(ctx, "update fault_injection set "+column+" = $1", value)
		return err
	}
	if exec(code) != nil {
		return func() {}
	}
	return func() {
		n.wait.Go(func() {
			var err error
			for range 60 {
				if err = exec(""); err == nil {
					return
				}
				time.Sleep(time.Second) //nolint:forbidigo // another fault is active
			}
			n.t.Errorf("repair %s: %v", column, err)
		})
	}
}

// clock steps the clock of PostgreSQL, which all times of the product are from. The
// clock of the other programs cannot be faked: those in Go read the vDSO, which
// libfaketime does not replace, and only the whole machine has another clock.
type clock struct{ file string }

// step sets the offset of the clock.
func (c *clock) step(t testing.TB, offset string) func() {
	t.Helper()
	set := func(offset string) {
		if err := os.WriteFile(c.file, []byte(offset+"\n"), 0o644); err != nil { // read by PostgreSQL's user
			t.Errorf("step clock: %v", err)
		}
	}
	set(offset)
	return func() { set("+0s") }
}

// disk is the file system of PostgreSQL's databases.
type disk struct{ path string }

const diskSize = "size=2g"

// newDisk moves the databases of a stopped server to a file system of their own. Only
// root can mount one; it returns nil otherwise.
func newDisk(t testing.TB, data string) *disk {
	t.Helper()
	d := &disk{path: filepath.Join(data, "base")}
	if os.Geteuid() != 0 {
		return nil
	}
	before := d.path + ".before"
	err := os.Rename(d.path, before)
	if err == nil {
		err = os.Mkdir(d.path, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(before)
	if err != nil {
		t.Fatal(err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatal("no owner of PostgreSQL's files")
	}
	options := fmt.Sprintf("%s,mode=0700,uid=%d,gid=%d", diskSize, owner.Uid, owner.Gid)
	switch err := syscall.Mount("tmpfs", d.path, "tmpfs", 0, options); {
	case errors.Is(err, syscall.EPERM): // a restricted container
		if err := errors.Join(os.Remove(d.path), os.Rename(before, d.path)); err != nil {
			t.Fatal(err)
		}
		return nil
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(d.path, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	run(t, "cp", "-a", before+"/.", d.path)
	return d
}

// fill reduces the file system to its used size.
func (d *disk) fill(t testing.TB) func() {
	t.Helper()
	var stat syscall.Statfs_t
	if err := syscall.Statfs(d.path, &stat); err != nil {
		t.Errorf("statfs: %v", err)
		return func() {}
	}
	d.resize(t, fmt.Sprintf("size=%d", (stat.Blocks-stat.Bfree+16)*uint64(stat.Bsize)))
	return func() { d.free(t) }
}

// free restores the size of the file system.
func (d *disk) free(t testing.TB) {
	t.Helper()
	d.resize(t, diskSize)
}

func (d *disk) resize(t testing.TB, options string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", d.path, "tmpfs", syscall.MS_REMOUNT, options); err != nil {
		t.Errorf("resize to %s: %v", options, err)
	}
}
