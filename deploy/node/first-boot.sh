#!/bin/sh
# Ends the first boot of a machine that Ignition has set up: installs this package, brings the operating system to what
# the config says, and puts the node worker into service. Run by drydock-first-boot.service before a kubelet starts; may
# be killed anywhere and is run again until it came to its end.
set -eu

here=$(cd "$(dirname "$0")" && pwd -P)
. "$here/guard/versions.sh"

FIRST_ENV=/etc/drydock/first-boot/node.env
FIRST_STATE=$STATE/first-boot
# One boot for the operating system, and no second: what is not as wanted after it, the node worker reports as drift.
REBOOTED=$FIRST_STATE/rebooted
REBOOT_IS_DUE=10

# An image, another kernel, packages, or arguments that Ignition did not set: one reboot, before any kubelet.
settle_operating_system() {
  [ ! -e "$REBOOTED" ] || return 0
  due=0
  "$OPT/current/bin/node" "$OPT/current/lib/workers/first-boot.js" || due=$?
  if [ "$due" = "$REBOOT_IS_DUE" ]; then
    : >"$REBOOTED"
    make_durable "$REBOOTED"
    say 'the operating system is not yet as its config says: one reboot before the kubelet starts'
    systemctl reboot
    # Whatever is ordered after this waits for the reboot.
    while :; do sleep 60; done
  fi
  [ "$due" = 0 ] || say 'the operating system could not be brought to what its config says; the node will say so as drift'
}

# Not in place before: install.sh would start a worker that reads a disk which is not at its end.
put_worker_into_service() {
  mv "$FIRST_ENV" "$NODE_ENV"
  make_durable "$NODE_ENV" /etc/drydock
  systemctl start --no-block "$SERVICE"
}

sh "$here/install.sh"
settle_operating_system
put_worker_into_service
say 'the first boot is done'
rm -rf "$FIRST_STATE"
