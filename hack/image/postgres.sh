#!/bin/bash
# Starts PostgreSQL like docker-entrypoint.sh of the official image, as far as the chart's demo needs it: creates a database in
# an empty $PGDATA whose superuser has $POSTGRES_PASSWORD, sets $POSTGRES_HOST_AUTH_METHOD for other machines, and runs the *.sh
# in /docker-entrypoint-initdb.d once, before clients can connect. A script that is not executable is sourced.
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
	echo >&2 'POSTGRES_PASSWORD is required to create the database'
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
