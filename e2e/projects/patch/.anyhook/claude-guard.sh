#!/bin/sh
# A guard as people have it for Claude Code: it knows that payload, and nothing else.
if tr -d ' \n' | grep '"tool_name":"\(Write\|Edit\|MultiEdit\)"' | grep -q '"file_path":"[^"]*-vault\.txt"'; then
    echo 'REASON-VAULT this file is not for agents' >&2
    exit 2
fi
