#!/bin/sh
# Says which calls the daemon made, and kills it in the middle of one.
payload=$(cat)
daemon=$(cat "$HOME/../run/service.pid")
echo "$daemon" > daemon.pid
parent=$PPID
while [ "$parent" -gt 1 ]; do
    [ "$parent" = "$daemon" ] && by=daemon
    parent=$(awk '{ print $4 }' "/proc/$parent/stat" 2> /dev/null || echo 0)
done
case $payload in
*first-denied.txt*) echo "first ${by-itself}" >> "$HOME/guard-runs" ;;
*killer-denied.txt*)
    echo "killer ${by-itself}" >> "$HOME/guard-runs"
    kill -KILL "$daemon" 2> /dev/null
    # The answer comes after the daemon is gone.
    while kill -0 "$daemon" 2> /dev/null && ! grep -q '^State:[[:space:]]*Z' "/proc/$daemon/status"; do sleep 0.1; done
    ;;
*last-denied.txt*) echo "last ${by-itself}" >> "$HOME/guard-runs" ;;
esac
case $payload in
*ask-me.txt*) echo '{"decision": "ask", "reason": "REASON-ASK is this for today?"}' ;;
*-denied.txt*) echo '{"decision": "deny", "reason": "REASON-DAEMON this command is not for today"}' ;;
esac
