#!/bin/sh
# Installs this package of the Drydock node worker, or upgrades to it. May be killed anywhere and run again.
set -eu

here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/guard/versions.sh"
. "$here/guard/host-lock.sh"

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

# What must hold on the machine, each with what to do.
check_system() {
  [ "$(id -u)" = 0 ] || fail 'installing needs root: run this with sudo'
  [ "$(uname -s)" = Linux ] || fail "this package is for Linux, this is $(uname -s)"
  check_architecture
  check_libc
  if [ -n "$root" ]; then
    [ -d "$root" ] || fail "--root $root: no such folder"
  else
    [ -d /run/systemd/system ] || fail 'this machine was not booted with systemd, which runs the worker; for an image use --root'
    systemd=$(systemctl --version | sed -n '1s/^systemd \([0-9]*\).*/\1/p')
    [ "${systemd:-0}" -ge 239 ] || fail "systemd here is ${systemd:-unknown}; the worker needs 239 or newer: upgrade the distribution"
    for program in systemctl systemd-notify flock; do
      command -v "$program" >/dev/null || fail "$program is missing: install systemd and util-linux"
    done
  fi
}

# The machine field of the ELF header of our own Node.js.
check_architecture() {
  [ -z "$root" ] || return 0
  case $(od -An -tx1 -j18 -N1 "$here/bin/node" | tr -d ' ') in
  3e) ours=x86_64 ;;
  b7) ours=aarch64 ;;
  *) fail "$here/bin/node is no program for x86_64 or aarch64: the package is damaged, fetch it again" ;;
  esac
  [ "$(uname -m)" = "$ours" ] || fail "this package is for $ours, this machine is $(uname -m): take the other package"
}

check_libc() {
  if [ -n "$root" ]; then
    found=$(grep -aoh 'GNU C Library.* version [0-9][0-9.]*' "$root"/lib*/libc.so.6 "$root"/lib*/*/libc.so.6 \
      "$root"/usr/lib*/libc.so.6 "$root"/usr/lib*/*/libc.so.6 2>/dev/null | head -n 1)
    [ -n "$found" ] || found=$(echo "$root"/lib/ld-musl-*)
  else
    found=$(ldd --version 2>&1 | head -n 1)
  fi
  case $found in
  "$root"/*'*') fail "no glibc was found below $root; the worker needs glibc 2.28 or newer" ;;
  *musl*) fail 'this system uses musl; the worker needs glibc 2.28 or newer: use a distribution with glibc' ;;
  esac
  libc=$(echo "$found" | sed 's/.*[^0-9.]\([0-9][0-9]*\.[0-9][0-9]*\)[0-9.]*[^0-9]*$/\1/')
  case $libc in
  2.[0-9] | 2.1[0-9] | 2.2[0-7]) ;;
  2.[0-9]*) return ;;
  esac
  fail "glibc here is ${libc:-unknown}; the worker needs 2.28 or newer: upgrade the distribution"
}

check_room() {
  needed=$(du -sk "$here" | cut -f 1)
  free=$(df -Pk "$root$OPT" | awk 'NR == 2 { print $4 }')
  # As much again stays free for the machine's own needs.
  [ "$free" -ge $((needed + needed / 2)) ] ||
    fail "$root$OPT has $((free / 1024)) MiB free, this version takes $((needed / 1024)) MiB: make room"
}

is_whole() { (cd "$1" && cmp -s SHA256SUMS "$here/SHA256SUMS" && sha256sum --check --quiet --strict SHA256SUMS) >/dev/null 2>&1; }

# The version's folder appears by a rename when all of it is on disk.
unpack() {
  rm -rf "$root$OPT"/.incoming-* "$root$OPT"/.replaced-*
  is_whole "$root$OPT/$version" && return 0
  check_room
  incoming=$root$OPT/.incoming-$version
  mkdir "$incoming"
  cp -R "$here/." "$incoming/"
  chown -R 0:0 "$incoming"
  is_whole "$incoming" || fail "the copy in $incoming is not what the package holds: is the package whole, the disk good?"
  if [ -z "$root" ]; then
    # Loads everything that the worker is made of, the native library included.
    printed=$(env -i "$incoming/bin/node" "$incoming/lib/workers/node.js" --version 2>&1) || true
    [ "$printed" = "$version" ] || fail "the worker does not run here: $(echo "$printed" | head -n 1)"
  fi
  make_durable -f "$incoming"
  # The same version with other contents, or damaged. Between the two renames there is none, for an instant.
  [ ! -e "$root$OPT/$version" ] || mv "$root$OPT/$version" "$root$OPT/.replaced-$version"
  mv "$incoming" "$root$OPT/$version"
  make_durable "$root$OPT"
  rm -rf "$root$OPT/.replaced-$version"
  restore_labels "$root" "$OPT"
}

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
