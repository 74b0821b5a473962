#!/bin/sh
# Sends the agent back to work once.
cat > /dev/null
if mkdir stopped 2> /dev/null; then
    echo '{"decision": "deny", "reason": "REASON-STOP there is a command left to run"}'
fi
