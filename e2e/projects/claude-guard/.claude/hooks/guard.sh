#!/bin/sh
# As people write it for Claude Code: reads the command with jq, and denies by exit 2.
command=$(jq -r '.tool_input.command // empty')
case $command in
*denied.txt*)
    echo 'REASON-NATIVE this command is not for today' >&2
    exit 2
    ;;
esac
