# How versions are kept side by side, and files put in their places. Sourced by versions.sh, which has set OPT, the folder
# of all versions; POSIX sh. It lies in the folder guard since upgrade-check needs it where no package is: it is put beside
# versions.sh with all of that folder.

say() { echo "drydock: $*"; }
fail() {
  echo "drydock: $*" >&2
  exit 1
}

# lock_versions FOLDER [SECONDS]: one installation, removal or end of an upgrade at a time. The kernel lets go when the
# process dies.
lock_versions() {
  exec 9>"$1/.lock"
  flock -w "${2:-600}" 9 || fail "another installation is at work (it holds $1/.lock): wait for it and run this again"
}

# On disk before what follows, also if the power fails.
make_durable() { sync "$@" 2>/dev/null || sync; }

# restore_labels ROOT FOLDER: as the SELinux policy of a running system says.
restore_labels() {
  [ -z "$1" ] && command -v restorecon >/dev/null && restorecon -R "$2" 2>/dev/null
  return 0
}

# current_version [ROOT]: empty if there is none.
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
