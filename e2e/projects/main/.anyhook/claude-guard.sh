#!/bin/sh
# A guard as people have it for Claude Code: it knows that payload, and nothing else.
payload=$(tr -d ' ')
case $payload in
*'"hook_event_name":"PreToolUse"'*) ;;
*) exit 0 ;;
esac
case $payload in
*'"tool_name":"Bash"'*'"tool_input":{'*guarded.txt* | *'"tool_input":{'*guarded.txt*'"tool_name":"Bash"'*)
    echo 'REASON-GUARD this file is not for agents' >&2
    exit 2
    ;;
esac
