# Which version of the control worker is installed. Sourced by install.sh and uninstall.sh; POSIX sh.

OPT=/opt/drydock-control
UNITS=/etc/systemd/system
SERVICE=drydock-control.service
ACCOUNTS=/etc/sysusers.d
ACCOUNT_FILE=drydock-control.conf
CONTROL_ENV=/etc/drydock/control.env

say() { echo "drydock: $*"; }
fail() {
  echo "drydock: $*" >&2
  exit 1
}

# One at a time. The kernel lets go when the process dies.
lock_versions() {
  exec 9>"$1/.lock"
  flock -w 600 9 || fail "another installation is at work (it holds $1/.lock): wait for it and run this again"
}

# On disk before what follows, also if the power fails.
make_durable() { sync "$@" 2>/dev/null || sync; }

# restore_labels ROOT FOLDER: as the SELinux policy of a running system says.
restore_labels() {
  [ -z "$1" ] && command -v restorecon >/dev/null && restorecon -R "$2" 2>/dev/null
  return 0
}

current_version() {
  link=$(readlink "${1:-}$OPT/current" 2>/dev/null) || return 0
  echo "${link##*/}"
}

# make_current VERSION [ROOT]: one rename, so that there is a current version at every instant.
make_current() {
  rm -f "${2:-}$OPT/.current"
  ln -s "$1" "${2:-}$OPT/.current"
  mv -T "${2:-}$OPT/.current" "${2:-}$OPT/current"
  make_durable "${2:-}$OPT"
}

# place FILE FOLDER: a copy that is whole or not there, readable by all.
place() {
  target=$2/${1##*/}
  cmp -s "$1" "$target" && return 0
  mkdir -p "$2"
  cp "$1" "$2/.${1##*/}.new"
  chmod 0644 "$2/.${1##*/}.new"
  make_durable "$2/.${1##*/}.new"
  mv "$2/.${1##*/}.new" "$target"
  make_durable "$2"
}

is_running() { systemctl is-active --quiet "$SERVICE"; }

# Of the process that runs now: another one means that systemd had to start it anew.
invocation() { systemctl show --property=InvocationID "$SERVICE" | sed 's/^InvocationID=//'; }
