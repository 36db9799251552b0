# Which version of the node worker is installed, runs, and is being upgraded to. Sourced by install.sh, uninstall.sh and
# upgrade-check; POSIX sh.
#
# An upgrade is recorded in $RECORD before anything of it happens, as lines from=, to=, since=. While it is there,
# drydock-upgrade-check.service watches over it. The worker's part is one file: $POLLING holds the version of the worker
# that serves its queue; the service's runtime directory goes, and the file with it, whenever the worker stops.

OPT=/opt/drydock
# Called bin, since under /opt SELinux lets systemd start programs from folders of that name only.
GUARD=$OPT/bin
STATE=/var/lib/drydock
RECORD=$STATE/upgrade
LAST_UPGRADE=$STATE/last-upgrade
POLLING=/run/drydock/polling
UNITS=/etc/systemd/system
SERVICE=drydock-node.service
CHECK_SERVICE=drydock-upgrade-check.service
NODE_ENV=/etc/drydock/node.env

# Those of a package set $here; upgrade-check has all of this folder in one place.
package_guard=${here:+$here/guard}
. "${package_guard:-$GUARD}/installing.sh"

unlock_versions() { exec 9>&-; }

worker_pid() { systemctl show --property=MainPID "$SERVICE" 2>/dev/null | sed 's/^MainPID=//'; }

# The version whose process runs, which may be another than the current one; empty: none. What runs from a folder that
# was replaced is no version.
running_version() {
  pid=$(worker_pid)
  [ "${pid:-0}" -gt 0 ] || return 0
  exe=$(readlink "/proc/$pid/exe" 2>/dev/null) || return 0
  exe=${exe%/bin/node*}
  case ${exe##*/} in .*) return 0 ;; esac
  echo "${exe##*/}"
}

# Whether the service is meant to run: also while it waits for its next start.
is_in_service() {
  case $(systemctl show --property=ActiveState "$SERVICE" 2>/dev/null) in
  *=active | *=activating | *=deactivating | *=reloading) return 0 ;;
  *) return 1 ;;
  esac
}

# place FILE FOLDER MODE: a copy that is whole or not there.
place() {
  target=$2/${1##*/}
  cmp -s "$1" "$target" && return 0
  cp "$1" "$2/.${1##*/}.new"
  chmod "$3" "$2/.${1##*/}.new"
  make_durable "$2/.${1##*/}.new"
  mv "$2/.${1##*/}.new" "$target"
  make_durable "$2"
}

# place_unit VERSION: the service as this version wants it.
place_unit() {
  place "$OPT/$1/unit/$SERVICE" "$UNITS" 0644
  systemctl daemon-reload
}

# place_guard VERSION [ROOT]: what watches over upgrades belongs to no version: the one that has proved itself puts its
# own here.
place_guard() {
  mkdir -p "${2:-}$GUARD" "${2:-}$UNITS"
  for file in "${2:-}$OPT/$1"/guard/*; do place "$file" "${2:-}$GUARD" 0755; done
  place "${2:-}$OPT/$1/unit/$CHECK_SERVICE" "${2:-}$UNITS" 0644
  restore_labels "${2:-}" "$GUARD"
}

# Sets from and to of the upgrade that is recorded; fails if there is none.
read_record() {
  [ -s "$RECORD" ] || return 1
  from=$(sed -n 's/^from=//p' "$RECORD")
  to=$(sed -n 's/^to=//p' "$RECORD")
  [ -n "$from" ] && [ -n "$to" ]
}

# write_record FROM TO
write_record() {
  printf 'from=%s\nto=%s\nsince=%s\n' "$1" "$2" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$RECORD.new"
  make_durable "$RECORD.new"
  mv "$RECORD.new" "$RECORD"
  make_durable "$STATE"
}

# close_record OUTCOME: the upgrade is over; how it ended stays in $LAST_UPGRADE.
close_record() {
  [ -e "$RECORD" ] || return 0
  { cat "$RECORD"; echo "outcome=$1"; } >"$LAST_UPGRADE.new"
  mv "$LAST_UPGRADE.new" "$LAST_UPGRADE"
  rm -f "$RECORD"
  make_durable "$STATE"
}

# Starts the current version in place of the one that runs; returns when that one has ended.
restart_worker() {
  old=$(worker_pid)
  # A unit that systemd refuses is a version that does not serve: found out as any other.
  systemctl restart --no-block "$SERVICE" || true
  left=150
  while [ "$left" -gt 0 ] && [ "${old:-0}" -gt 0 ] && [ "$(worker_pid)" = "$old" ]; do
    sleep 1
    left=$((left - 1))
  done
}
