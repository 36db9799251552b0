# Which version of the control worker is installed. Sourced by install.sh and uninstall.sh; POSIX sh.

OPT=/opt/drydock-control
UNITS=/etc/systemd/system
SERVICE=drydock-control.service
ACCOUNTS=/etc/sysusers.d
ACCOUNT_FILE=drydock-control.conf
CONTROL_ENV=/etc/drydock/control.env
IGNITION_SERVICE=drydock-ignition-server.service
IGNITION_ENV=/etc/drydock/ignition-server.env

. "$here/guard/installing.sh"

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
