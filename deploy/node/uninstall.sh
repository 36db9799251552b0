#!/bin/sh
# Removes the Drydock node worker from this machine. May be killed anywhere and run again.
set -eu

here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/guard/versions.sh"

usage() {
  cat <<USAGE
usage: uninstall.sh [--purge] [--force]

Stops and removes the worker. Files, units and SSH keys that its configs wrote stay as they are. $STATE, which knows
what was there before, and $NODE_ENV are kept, so that an installation goes on where this one ends.

  --purge   remove them too: what the worker replaced can never come back
  --force   also in the middle of an update of this node, which stays half-done
USAGE
}

purge=
force=
for argument; do
  case $argument in
  --purge) purge=yes ;;
  --force) force=yes ;;
  --help) usage && exit 0 ;;
  *) usage >&2 && exit 2 ;;
  esac
done

main() {
  [ "$(id -u)" = 0 ] || fail 'uninstalling needs root: run this with sudo'
  [ ! -d "$OPT" ] || lock_versions "$OPT"
  [ ! -e "$STATE/journal.json" ] || [ -n "$force" ] ||
    fail "an update of this node is not finished ($STATE/journal.json): wait for its end, or leave it half-done with --force"
  # The upgrade first, so that nothing starts the service again.
  rm -f "$RECORD"
  for unit in "$CHECK_SERVICE" "$SERVICE"; do
    [ ! -e "$UNITS/$unit" ] || systemctl disable --quiet --now "$unit"
    rm -f "$UNITS/$unit"
  done
  systemctl daemon-reload
  systemctl reset-failed "$SERVICE" "$CHECK_SERVICE" 2>/dev/null || true
  # Away in one step: this file is in there as well.
  [ ! -d "$OPT" ] || mv "$OPT" "$OPT.removed-$$"
  rm -rf "$OPT".removed-*
  say 'the worker is removed; files, units and SSH keys that its configs wrote stay as they are'
  if [ -n "$purge" ]; then
    rm -rf "$STATE" "${NODE_ENV%/*}"
    say "$STATE and ${NODE_ENV%/*} are removed"
  else
    say "$STATE and $NODE_ENV are kept; uninstall.sh --purge of the package removes them"
  fi
  say 'if the node is still cordoned by it, run: kubectl uncordon NODE'
}

main
