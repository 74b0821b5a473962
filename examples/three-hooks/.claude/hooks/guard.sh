#!/bin/sh
# Denies `rm -rf`, in Claude Code's format.
set -e
command=$(jq -r '.tool_input.command // ""')
case "$command" in
*'rm -rf'*)
  echo 'no recursive deletes' >&2
  exit 2
  ;;
esac
