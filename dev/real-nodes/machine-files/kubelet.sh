#!/bin/sh
# The lab's stand-in for the kubelet.
exec /usr/local/lib/kubelet-stand-in/node /usr/local/lib/kubelet-stand-in/kubelet.mjs "$@"
