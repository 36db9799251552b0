#!/bin/sh
# The lab's stand-in for grub-mkrelpath: the real one would find the folder of the host that is a machine's root.
for path; do :; done
echo "$path"
