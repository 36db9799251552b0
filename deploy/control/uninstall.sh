#!/bin/sh
# Removes the Drydock control worker and the command drydock from this machine. May be killed anywhere and run again.
set -eu

here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/versions.sh"

[ $# -eq 0 ] || {
  echo "usage: uninstall.sh
Stops and removes the control worker and the command. $CONTROL_ENV and the account drydock stay. Rollouts go on where
another control worker runs; without any they stand still." >&2
  exit 2
}

main() {
  [ "$(id -u)" = 0 ] || fail 'uninstalling needs root: run this with sudo'
  [ ! -d "$OPT" ] || lock_versions "$OPT"
  for unit in "$IGNITION_SERVICE" "$SERVICE"; do
    [ ! -e "$UNITS/$unit" ] || systemctl disable --quiet --now "$unit"
    rm -f "$UNITS/$unit"
  done
  rm -f "$ACCOUNTS/$ACCOUNT_FILE"
  systemctl daemon-reload
  # Away in one step: this file is in there as well.
  [ ! -d "$OPT" ] || mv "$OPT" "$OPT.removed-$$"
  rm -rf "$OPT".removed-*
  say "the control worker is removed; $CONTROL_ENV and the account drydock are kept"
}

main
