#!/bin/sh
# Installs this package of the Drydock control worker and of the command drydock, or changes to it. May be killed anywhere
# and run again.
set -eu

here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/versions.sh"
. "$here/unpack.sh"

usage() {
  cat <<USAGE
usage: install.sh [--root DIR]

Puts version $(cat "$here/VERSION") into $OPT, makes the account drydock, and starts $SERVICE once $CONTROL_ENV is
there, and $IGNITION_SERVICE once $IGNITION_ENV is. Where another version runs the service is restarted; no rollout is lost by that, and the previous version is kept:
its install.sh leads back.

  --root DIR   install into the file system below DIR, an image that is not running: nothing is started
USAGE
}

root=
while [ $# -gt 0 ]; do
  case $1 in
  --root) root=${2:?--root needs a folder} && shift ;;
  --help) usage && exit 0 ;;
  *) usage >&2 && exit 2 ;;
  esac
  shift
done
version=$(cat "$here/VERSION")
[ "$root" = / ] && root=
WORKER=lib/workers/control.js
PROGRAMS='systemctl systemd-sysusers flock'
# It says that it runs within a few seconds where its servers are there, and waits for them where they are not.
TRIAL_SECONDS=10

# In an image systemd makes the account at the first boot.
make_account() {
  place "$root$OPT/$version/sysusers/$ACCOUNT_FILE" "$root$ACCOUNTS"
  [ -n "$root" ] || systemd-sysusers "$ACCOUNTS/$ACCOUNT_FILE" ||
    fail "the account drydock could not be made: systemd-sysusers $ACCOUNTS/$ACCOUNT_FILE says why"
}

enable_in_root() {
  mkdir -p "$root$UNITS/multi-user.target.wants"
  for unit in "$SERVICE" "$IGNITION_SERVICE"; do ln -sfn "../$unit" "$root$UNITS/multi-user.target.wants/$unit"; done
  say "version $version is installed below $root; it starts at boot if $CONTROL_ENV is there"
}

# A version that cannot run ends at once, again and again.
run_version() {
  systemctl restart "$SERVICE" || fail "version $version is installed, but $SERVICE does not start: see journalctl -u $SERVICE"
  started=$(invocation)
  left=$TRIAL_SECONDS
  while [ "$left" -gt 0 ]; do
    sleep 1
    left=$((left - 1))
    is_running && [ "$(invocation)" = "$started" ] ||
      fail "version $version is installed, but ends as soon as it is started: see journalctl -u $SERVICE${previous:+; $OPT/$previous/install.sh leads back}"
  done
  say "version $version is in service"
}

# Where machines boot from this one; the control worker does not depend on it.
run_ignition_server() {
  [ -e "$IGNITION_ENV" ] || return 0
  systemctl restart "$IGNITION_SERVICE" ||
    fail "version $version is installed, but $IGNITION_SERVICE does not start: see journalctl -u $IGNITION_SERVICE"
}

remove_older() {
  # What was installed once more says nothing of which version was before it.
  [ "$previous" != "$version" ] || return 0
  for folder in "$root$OPT"/*/; do
    name=$(basename "$folder")
    case $name in "$version" | "$previous" | current) ;; *) rm -rf "$root$OPT/$name" ;; esac
  done
}

put_into_service() {
  systemctl daemon-reload
  systemctl enable --quiet "$SERVICE" "$IGNITION_SERVICE"
  if [ -e "$CONTROL_ENV" ]; then
    run_version
  else
    say "version $version is installed. Write $CONTROL_ENV ($OPT/current/control.env.example shows how), then: systemctl start $SERVICE"
  fi
}

main() {
  check_system
  mkdir -p "$root$OPT"
  lock_versions "$root$OPT"
  previous=$(current_version "$root")
  unpack
  make_account
  make_current "$version" "$root"
  for unit in "$SERVICE" "$IGNITION_SERVICE"; do place "$root$OPT/$version/unit/$unit" "$root$UNITS"; done
  if [ -n "$root" ]; then
    enable_in_root
  else
    put_into_service
    run_ignition_server
  fi
  remove_older
}

main
