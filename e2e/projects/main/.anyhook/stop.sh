#!/bin/sh
# Sends the agent back to work once: not a sub-agent, which ends before the last commands are tried.
cat > /dev/null
if [ -e garbage.txt ] && mkdir stopped 2> /dev/null; then
    echo '{"decision": "deny", "reason": "REASON-STOP there is a command left to run"}'
fi
