# The lock that keeps the worker's steps apart (activities/host/lock.ts), taken from a shell: a JSON file that names its
# holder, made by a link. A holder whose process or boot is gone holds nothing. Sourced after versions.sh.

HOST_LOCK=$STATE/lock
JOURNAL=$STATE/journal.json
# Of our hold; empty: we hold nothing.
lock_id=

# process_started PID: in clock ticks since boot; empty if there is no such process.
process_started() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }

# lock_field NAME [FILE]
lock_field() { sed -n "s/.*\"$1\":\"\\{0,1\\}\\([^\",}]*\\).*/\\1/p" "${2:-$HOST_LOCK}" 2>/dev/null; }

holder_is_alive() {
  [ "$(lock_field bootId)" = "$(cat /proc/sys/kernel/random/boot_id)" ] || return 1
  holder_pid=$(lock_field pid)
  [ -n "$holder_pid" ] && [ "$(process_started "$holder_pid")" = "$(lock_field processStarted)" ]
}

# Fails when somebody else holds it.
take_host_lock() {
  lock_id=$(cat /proc/sys/kernel/random/uuid)
  printf '{"id":"%s","pid":%s,"processStarted":"%s","bootId":"%s","doing":"%s"}' "$lock_id" "$$" \
    "$(process_started $$)" "$(cat /proc/sys/kernel/random/boot_id)" 'an upgrade of Drydock' >"$HOST_LOCK.$lock_id"
  taken=1
  for _ in 1 2; do
    ln "$HOST_LOCK.$lock_id" "$HOST_LOCK" 2>/dev/null && taken=0 && break
    holder=$(lock_field id)
    holder_is_alive && break
    # Moved aside, and back if it is not the dead holder's any more.
    mv "$HOST_LOCK" "$HOST_LOCK.stale-$lock_id" 2>/dev/null || continue
    if [ "$(lock_field id "$HOST_LOCK.stale-$lock_id")" = "$holder" ]; then
      rm -f "$HOST_LOCK.stale-$lock_id"
    else
      mv "$HOST_LOCK.stale-$lock_id" "$HOST_LOCK"
    fi
  done
  rm -f "$HOST_LOCK.$lock_id"
  return "$taken"
}

release_host_lock() {
  [ -z "$lock_id" ] || [ "$(lock_field id)" != "$lock_id" ] || rm -f "$HOST_LOCK"
  lock_id=
}

# wait_for_quiet SECONDS: holds the lock of a host without an open update. Fails, holding nothing, when that takes longer;
# $why says what was in the way.
wait_for_quiet() {
  left=$1
  told=
  while :; do
    if take_host_lock; then
      [ -e "$JOURNAL" ] || return 0
      release_host_lock
      why='an update of this node is not finished'
    else
      why="$(lock_field doing) is at work on this host"
    fi
    [ "$left" -gt 0 ] || return 1
    [ -n "$told" ] || say "waiting up to $1 s: $why"
    told=yes
    sleep 1
    left=$((left - 1))
  done
}
