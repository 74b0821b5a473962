#!/bin/sh
# Looks for paths only, so that text of the patch that is passed on proves nothing.
if tr -d ' \n' | grep -q '"\(path\|from\|to\|new_path\|old_path\|move_to\|moved_to\)":"[^"]*-secret\.txt"'; then
    echo '{"decision": "deny", "reason": "REASON-FILE this file is not for agents"}'
fi
