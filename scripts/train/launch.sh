#!/usr/bin/env bash
# Starts run.sh detached on the training machine, from a copy of the sources that later transfers cannot change.
#
#   launch.sh PARTS...   copies PARTS/* to the run's parts folder and starts the run if it is not going yet
set -eu
base=${BASE:-/tmp/ember}
here=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$base/parts" "$base/incoming"
for folder in "$@"; do
  cp "$folder"/* "$base/incoming/"
  mv "$base"/incoming/* "$base/parts/"
done
if [ ! -e "$base/src" ]; then
  mkdir -p "$base/src/scripts" "$base/src/engine/models/ember"
  cp -r "$here/scripts/train" "$base/src/scripts/"
  cp "$here"/engine/models/ember/{codec,layout}.py "$base/src/engine/models/ember/"
fi
if [ "${START:-yes}" = yes ]; then
  cd "$base/src"
  setsid nohup bash scripts/train/run.sh "$base/work" "$base/parts" >>"$base/run.out" 2>&1 </dev/null &
fi
