#!/bin/sh
# Stands beside a test server in a session of its own. Its standard input is a pipe that the starter holds open, so it
# ends when the starter ends, however hard that was; then whatever still runs inside the server's directory is killed
# and the directory removed. After an orderly stop the directory is gone and there is nothing to do.
directory=$1
cat >/dev/null
rounds=0
while [ -d "$directory" ] && [ $rounds -lt 50 ]; do
  alive=no
  for process in /proc/[0-9]*; do
    case "$(readlink "$process/cwd" 2>/dev/null)" in
      "$directory" | "$directory"/*)
        alive=yes
        kill -9 "${process#/proc/}" 2>/dev/null
        ;;
    esac
  done
  [ $alive = no ] && rm -rf -- "$directory"
  rounds=$((rounds + 1))
  sleep 0.1
done
