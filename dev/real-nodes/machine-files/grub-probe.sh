#!/bin/sh
# The lab's stand-in for grub-probe: a machine of systemd-nspawn has no disk that the real one would find.
while [ $# -gt 0 ]; do
  case "$1" in
    --target=*) target=${1#--target=} ;;
    -t|--target) target=$2; shift ;;
  esac
  shift
done
case "$target" in
  device) echo /dev/vda1 ;;
  fs) echo ext2 ;;
  fs_uuid) echo 5f6e3a52-8a55-4a5f-9f25-6b1f1f8f0a11 ;;
  partmap) echo gpt ;;
  partuuid) echo 0f8b7d1e-01 ;;
  drive) echo '(hd0,gpt1)' ;;
esac
