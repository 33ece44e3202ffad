#!/usr/bin/env bash
# The whole training run on one machine with one or two GPUs, stages by the wall clock.
#
#   run.sh WORK PARTS
#
# PARTS holds teacher.npz.xz, jobs.npz, ref.npz, sentences.tsv.xz and codec.* (a codec to start from, packed by
# deliver.py). They may arrive while the run is on; each stage waits for its own. Every stage leaves a marker in
# WORK, so the script can be started again after a fault and goes on where it was. Results are published in
# WORK/store (see deliver.py). WORK/clock holds the ends of the stages and may be edited while they run.
#
# Environment: DEVICE (cuda or cpu), GPUS (1 or 2), SYNTH_END FREEZE CODEC_END LM_START LM_END (seconds from the
# start), SYNTH_WORKERS, SYNTH_ARGS REF_ARGS CODEC_ARGS LM_ARGS (more arguments), CODEC_MODES LM_MODES.
set -u
work=$1 parts=$2
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$work/log" "$work/shards" "$work/store"
[ -e "$work/t0" ] || date +%s >"$work/t0"
t0=$(cat "$work/t0")
export PYTHONPATH=${here%/scripts/train} PYTHONUNBUFFERED=1 OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
device=${DEVICE:-cuda} gpus=${GPUS:-2}
first=0 second=$((gpus - 1)) # which GPU; each process sees one only

elapsed() { echo $(($(date +%s) - t0)); }
say() { echo "[$(elapsed)s] $*" | tee -a "$work/log/run.log"; }
wait_for() { until [ -e "$1" ]; do sleep 0.5; done; }
wait_until() { while [ "$(elapsed)" -lt $(($(limit "$1") - ${2:-0})) ]; do sleep 0.5; done; } # END [SECONDS_BEFORE]
limit() { awk -v name="$1" '$1 == name {print int($2)}' "$work/clock"; }
module() { local name=$1; shift; python3 -m "scripts.train.$name" "$@"; }
module_on() { local gpu=$1 name=$2; shift 2; CUDA_VISIBLE_DEVICES=$gpu python3 -m "scripts.train.$name" --device "$device" "$@"; }
publish() { [ ! -e "$2" ] || module deliver publish "$work/store" "$@"; }
first_that_works() { # MODES command...: tries the command with --mode until one run succeeds
  local modes=$1 mode; shift
  for mode in $modes; do
    say "$1: mode $mode"
    "$@" --mode "$mode" && return 0
    say "$1: mode $mode failed"
  done
  return 1
}

[ -e "$work/clock" ] || cat >"$work/clock" <<END
synth_end ${SYNTH_END:-910}
freeze ${FREEZE:-930}
codec_end ${CODEC_END:-1500}
lm_start ${LM_START:-780}
lm_end ${LM_END:-1500}
END

synthesise() {
  [ -e "$work/synth.done" ] && return
  wait_for "$parts/teacher.npz.xz"; wait_for "$parts/jobs.npz"
  local workers=${SYNTH_WORKERS:-3} until=$((t0 + $(limit synth_end))) rank pids=
  say "synthesis: $workers workers on GPU $second"
  for rank in $(seq 0 $((workers - 1))); do
    synth_worker "$rank" "$workers" "$until" & pids="$pids $!"
  done
  reference &
  wait $pids
  say "synthesis ended"; touch "$work/synth.done"
}

synth_worker() { # RANK WORKERS UNTIL: begins again, with other file names, when it fails
  local try=0
  while [ "$(date +%s)" -lt "$3" ]; do
    module_on "$second" synth --jobs "$parts/jobs.npz" --weights "$parts/teacher.npz.xz" --out "$work/shards" --rank "$1" \
      --workers "$2" --until "$3" --prefix "k$(date +%s)-" ${SYNTH_ARGS:-} >>"$work/log/synth$1.log" 2>&1 && return
    try=$((try + 1)); say "synthesis worker $1 failed ($try)"; sleep 3
  done
}

reference() { # the teacher's own audio of the evaluation sentences
  [ -e "$work/reference.done" ] && return
  wait_for "$parts/ref.npz"
  module_on "$second" synth --jobs "$parts/ref.npz" --weights "$parts/teacher.npz.xz" --out "$work/reference" \
    --once --shard-seconds 100000 --prefix ref ${REF_ARGS:-} >"$work/log/reference.log" 2>&1 || { say "reference audio failed"; return 1; }
  touch "$work/reference.done"
  for file in "$work"/reference/*.npy; do publish "ref-$(basename "$file")" "$file"; done
  say "reference audio done"
}

train_codec() {
  [ -e "$work/codec.done" ] && return
  until [ -e "$work/start/model.safetensors" ]; do
    sleep 0.5
    ls "$parts"/codec.*of* >/dev/null 2>&1 || continue
    sleep 2
    module deliver join "$parts" "$work/start" >/dev/null && mv "$work/start/codec" "$work/start/model.safetensors" \
      && cp "$parts/codec-config.json" "$work/start/config.json"
  done
  try_codec() { # goes on from the newest weights of an earlier try
    local from=$work/start
    [ -e "$work/codec/model.safetensors" ] && from=$work/codec
    OMP_NUM_THREADS=4 module_on "$first" train_codec "$work/shards" "$work/codec" --init "$from" --t0 "$t0" --clock "$work/clock" \
      ${CODEC_ARGS:-} "$@" >>"$work/log/codec.log" 2>&1
  }
  first_that_works "${CODEC_MODES:-full graph compile eager}" try_codec && touch "$work/codec.done"
  say "codec training left"
  [ -e "$work/codec/model.safetensors" ] && publish codec-final "$work/codec/model.safetensors"
}

encode() {
  [ -e "$work/tokens/ready" ] && return
  wait_for "$work/codec/frozen/done"; wait_for "$work/synth.done"
  say "encoding"
  local pid
  publish codec-frozen "$work/codec/frozen/model.safetensors" &
  module_on "$first" encode "$work/shards" "$work/codec/frozen" "$work/tokens" --part 0 --parts 2 \
    >"$work/log/encode0.log" 2>&1 &
  pid=$!
  module_on "$second" encode "$work/shards" "$work/codec/frozen" "$work/tokens" --part 1 --parts 2 \
    >"$work/log/encode1.log" 2>&1
  wait $pid
  touch "$work/tokens/ready"
  say "encoded: $(cat "$work"/log/encode?.log | tr '\n' ' ')"
  for file in "$work"/tokens/*.npz; do publish "$(basename "$file")" "$file"; done
}

train_lm() {
  [ -e "$work/lm.done" ] && return
  wait_until lm_start; wait_for "$parts/sentences.tsv.xz"
  try_lm() {
    module_on "$second" train_lm "$work/tokens" "$parts/sentences.tsv.xz" "$work/lm" --t0 "$t0" --clock "$work/clock" \
      ${LM_ARGS:-} "$@" >>"$work/log/lm.log" 2>&1
  }
  first_that_works "${LM_MODES:-flex dense eager}" try_lm && touch "$work/lm.done"
  say "language model left"
  publish lm-last "$work/lm/last/model.safetensors"
  cmp -s "$work/lm/last/model.safetensors" "$work/lm/best/model.safetensors" \
    || publish lm-best "$work/lm/best/model.safetensors"
}

snapshot() { # a language model comes home early, in case the end is cut off
  wait_until lm_end "${SNAPSHOT_BEFORE:-240}"
  [ -e "$work/lm/last/model.safetensors" ] || return
  cp "$work/lm/last/model.safetensors" "$work/lm/early.safetensors"
  publish lm-early "$work/lm/early.safetensors"
}

synthesise & train_codec & encode & train_lm & snapshot &
wait
tar -C "$work" -cf "$work/logs.tar" log clock t0
publish logs "$work/logs.tar"
touch "$work/all.done"
say "all done"
