# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# shellcheck disable=SC2034  # who sources this uses launcher, data_options and code
#
# What the batch scripts beside this file share. It is sourced: . "$LOCKSTEP_SLURM/job.sh"
#
#   LAUNCHER=srun|mpirun     who starts the ranks (default: srun)
#   LOCKSTEP=FILE            the program (default: lockstep in PATH, or build/release/bin/lockstep)
#   STAGE=FILE               copy this data file to each node's own disk, and read it there (stage_data)

LOCKSTEP="${LOCKSTEP:-$(command -v lockstep || echo "$PWD/build/release/bin/lockstep")}"
[ -x "$LOCKSTEP" ] || { echo "error: there is no program $LOCKSTEP; set LOCKSTEP" >&2; exit 2; }

# Threads that libraries might start beside Lockstep's own.
export OMP_NUM_THREADS=1
# mpirun's daemons notice a host that is lost within 20 s instead of minutes (docs/hosts.md).
export OMPI_MCA_oob_tcp_keepalive_time=10 OMPI_MCA_oob_tcp_keepalive_intvl=3 OMPI_MCA_oob_tcp_keepalive_probes=3

# Sets `launcher`: a rank for each task of the job, each bound to cores of its own.
choose_launcher() {
  local cpus="${SLURM_CPUS_PER_TASK:-1}"
  case "${LAUNCHER:-srun}" in
    # From Slurm 22.05 on srun does not take --cpus-per-task over from sbatch.
    srun) launcher=(srun --mpi=pmix --cpus-per-task="$cpus" --cpu-bind=cores --kill-on-bad-exit=0) ;;
    mpirun) launcher=(mpirun --map-by "slot:PE=$cpus" --bind-to core) ;;
    *) echo "error: LAUNCHER is '$LAUNCHER', not srun or mpirun" >&2; exit 2 ;;
  esac
}

# Tells Lockstep when this job ends. Newer versions of Slurm set this themselves.
tell_job_end() {
  local end
  [ -n "${SLURM_JOB_END_TIME:-}" ] && return
  end="$(squeue --noheader --job "$SLURM_JOB_ID" --format %e 2>/dev/null)" || return 0
  end="$(date --date="$end" +%s 2>/dev/null)" || return 0  # a job without a limit
  export SLURM_JOB_END_TIME="$end"
}

# With STAGE: copies that file to each node, and sets `data_options` so that it is read there.
stage_data() {
  data_options=()
  [ -n "${STAGE:-}" ] || return 0
  local folder="${SLURM_TMPDIR:-${TMPDIR:-/tmp}}/lockstep-$SLURM_JOB_ID"
  # shellcheck disable=SC2016  # $1 and $2 are that bash's
  srun --ntasks-per-node=1 --ntasks="$SLURM_JOB_NUM_NODES" --mpi=none --overlap \
    bash -c 'mkdir -p "$2" && cp -- "$1" "$2/"' stage "$STAGE" "$folder"
  # shellcheck disable=SC2064  # now, not then
  trap "srun --ntasks-per-node=1 --ntasks=$SLURM_JOB_NUM_NODES --mpi=none --overlap rm -rf -- '$folder'" EXIT
  data_options=(--set "data.path=$folder/$(basename -- "$STAGE")")
}

# run COMMAND...: runs it and sets `code`. It runs in the background because bash acts on a signal only while it waits.
# USR1 comes from --signal=B:USR1@120, TERM from a preemption. The launcher hands USR1 on to its ranks; they save and end
# with 75.
run() {
  "$@" &
  local launched=$!
  # shellcheck disable=SC2064  # now, not then
  trap "kill -USR1 $launched 2>/dev/null" USR1 TERM
  # A signal ends `wait`: wait until the launcher has really gone.
  while kill -0 "$launched" 2>/dev/null; do wait "$launched"; done
  wait "$launched"
  code=$?
  trap - USR1 TERM
}

# After a run that ended with 75: whether the job is to go on. Not if it is being ended from outside, by scancel or because its
# time is over: then it is no longer in the state RUNNING. (A job that makes room for another one is queued again by Slurm.)
wants_another_job() {
  [ "$code" -eq 75 ] || return 1
  case "$(squeue --noheader --job "$SLURM_JOB_ID" --states all --format %T)" in
    RUNNING) return 0 ;;
    *) echo "saved; but the job is being ended from outside, so nothing follows it. Submit it again to go on."; return 1 ;;
  esac
}
