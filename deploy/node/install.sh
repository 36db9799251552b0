#!/bin/sh
# Installs this package of the Drydock node worker, or upgrades to it. May be killed anywhere and run again.
set -eu

here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/guard/versions.sh"
. "$here/guard/host-lock.sh"
. "$here/unpack.sh"

usage() {
  cat <<USAGE
usage: install.sh [--root DIR] [--wait SECONDS | --force]

Puts version $(cat "$here/VERSION") into $OPT and starts it as $SERVICE once $NODE_ENV is there.
Where another version is installed this is an upgrade: the service is restarted when no update of the node is open, and the
previous version comes back by itself if the new one does not serve its queue within two minutes.

  --root DIR       install into the file system below DIR, an image that is not running: nothing is started
  --wait SECONDS   how long an upgrade waits for an update of the node to end (default 600)
  --force          do not wait for it: for a worker that cannot end the update, because it does not run
USAGE
}

root=
wait=600
force=
while [ $# -gt 0 ]; do
  case $1 in
  --root) root=${2:?--root needs a folder} && shift ;;
  --wait) wait=${2:?--wait needs seconds} && shift ;;
  --force) force=yes ;;
  --help) usage && exit 0 ;;
  *) usage >&2 && exit 2 ;;
  esac
  shift
done
case $wait in '' | *[!0-9]*) fail "--wait $wait: not a number of seconds" ;; esac
version=$(cat "$here/VERSION")
[ "$root" = / ] && root=
WORKER=lib/workers/node.js
PROGRAMS='systemctl systemd-notify flock'

install_into_root() {
  make_current "$version" "$root"
  place_guard "$version" "$root"
  place "$root$OPT/$version/unit/$SERVICE" "$root$UNITS" 0644
  mkdir -p "$root$UNITS/multi-user.target.wants"
  for unit in "$SERVICE" "$CHECK_SERVICE"; do ln -sfn "../$unit" "$root$UNITS/multi-user.target.wants/$unit"; done
  say "version $version is installed below $root; it starts at boot if $NODE_ENV is there"
}

# The first installation, one that was interrupted, or a version that no running worker has to make room for.
put_into_service() {
  make_current "$version"
  place_guard "$version"
  place_unit "$version"
  systemctl enable --quiet "$SERVICE" "$CHECK_SERVICE"
  if [ ! -e "$NODE_ENV" ]; then
    say "version $version is installed. Write $NODE_ENV (mode 0600; $OPT/current/node.env.example shows how), then: systemctl start $SERVICE"
    return
  fi
  systemctl start "$SERVICE" ||
    fail "version $version is installed, but $SERVICE does not start: see journalctl -u $SERVICE"
  say "version $version is in service"
}

hold_quiet_host() {
  [ -z "$force" ] || return 0
  wait_for_quiet "$wait" ||
    fail "version $version is unpacked, but not put into service: $why; run this again later, or with a longer --wait"
}

# From the record on, the upgrade ends one way or the other without us. The guard is still the old version's.
upgrade() {
  hold_quiet_host
  write_record "$previous" "$version"
  systemctl start --no-block "$CHECK_SERVICE"
  make_current "$version"
  place_unit "$version"
  restart_worker
  release_host_lock
}

# What was installed again is this very version: there is none to go back to.
restart_same_version() {
  hold_quiet_host
  place_unit "$version"
  restart_worker
  release_host_lock
  say "version $version was installed again and restarted"
}

# The check goes on with what was interrupted, too.
wait_for_end_of_upgrade() {
  systemctl start --no-block "$CHECK_SERVICE"
  unlock_versions
  left=900
  while [ -e "$RECORD" ]; do
    [ "$left" -gt 0 ] || fail "an upgrade does not come to its end: see journalctl -u $CHECK_SERVICE, then run this again"
    sleep 1
    left=$((left - 1))
  done
}

report() {
  outcome=$(sed -n 's/^outcome=//p' "$LAST_UPGRADE")
  [ "$outcome" = kept ] || fail "version $version $outcome: $(current_version) is in service; see journalctl -u $SERVICE"
  say "version $version is in service"
}

main() {
  check_system
  mkdir -p "$root$OPT"
  lock_versions "$root$OPT"
  unpack
  if [ -n "$root" ]; then
    install_into_root
    return
  fi
  mkdir -p -m 0700 "$STATE"
  if [ -e "$RECORD" ] && is_in_service; then
    say 'waiting for the end of an earlier upgrade'
    wait_for_end_of_upgrade
    lock_versions "$OPT"
  fi
  previous=$(current_version)
  if ! is_in_service; then
    rm -f "$RECORD"
    put_into_service
  elif [ "$previous" != "$version" ]; then
    upgrade
    wait_for_end_of_upgrade
    report
  elif [ "$(running_version)" != "$version" ]; then
    restart_same_version
  else
    place_guard "$version"
    place_unit "$version"
    say "version $version is in service already"
  fi
}

main
