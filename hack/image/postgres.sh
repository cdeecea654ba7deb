#!/bin/bash
# Starts PostgreSQL as the official image does (its docker-entrypoint.sh), as far as the chart's demo asks for it: an empty
# $PGDATA becomes a database whose superuser has $POSTGRES_PASSWORD, other machines sign in by $POSTGRES_HOST_AUTH_METHOD, and
# the *.sh of /docker-entrypoint-initdb.d run once, before anybody can connect. One that is not executable is sourced, so what
# it does to this shell is done to this script.
set -Eeo pipefail

if [ "$1" != postgres ]; then
	exec "$@"
fi
mkdir -p "$PGDATA"
chmod 00700 "$PGDATA" || :
mkdir -p /var/run/postgresql || :
chmod 03775 /var/run/postgresql || :
if [ -s "$PGDATA/PG_VERSION" ]; then
	exec "$@"
fi
if [ -z "$POSTGRES_PASSWORD" ]; then
	echo >&2 'there is no database yet, and no POSTGRES_PASSWORD for its superuser'
	exit 1
fi
: "${POSTGRES_USER:=postgres}"
export POSTGRES_USER
initdb --pgdata="$PGDATA" --username="$POSTGRES_USER" --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD")
printf '\nhost all all all %s\n' "${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}" >>"$PGDATA/pg_hba.conf"
export PGPASSWORD="${PGPASSWORD:-$POSTGRES_PASSWORD}"
PGUSER="${PGUSER:-$POSTGRES_USER}" pg_ctl -D "$PGDATA" -o "-c listen_addresses=''" -w start
for f in /docker-entrypoint-initdb.d/*.sh; do
	if [ ! -e "$f" ]; then
		continue
	elif [ -x "$f" ]; then
		"$f"
	else
		. "$f"
	fi
done
PGUSER="${PGUSER:-postgres}" pg_ctl -D "$PGDATA" -m fast -w stop
unset PGPASSWORD
exec "$@"
