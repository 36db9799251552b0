# What every install.sh of a package does: looks whether the machine can run it, and puts the version beside the others.
# Sourced by install.sh; POSIX sh. It has set:
#
#   here, version   folder and version of the package
#   root            where to install, empty for the machine itself
#   OPT             folder of all versions, below root
#   WORKER          the worker's program in the package, by which it is tried
#   PROGRAMS        what the machine must have
#
# and has fail, make_durable, restore_labels.

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
    for program in $PROGRAMS; do
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
    printed=$(env -i "$incoming/bin/node" "$incoming/$WORKER" --version 2>&1) || true
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
