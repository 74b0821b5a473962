#!/bin/sh
# A PreToolUse hook for Claude Code: its payload on stdin, its answer on stdout.
case $(cat) in
*'"hook_event_name":"PreToolUse"'*'git push --force"'*)
    echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse",
           "updatedInput": {"command": "git push --force-with-lease"}}}'
    ;;
esac
