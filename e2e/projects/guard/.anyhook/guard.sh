#!/bin/sh
# Counts its runs where every copy of the project can reach it.
payload=$(cat)
echo run >> "$HOME/guard-runs"
case $payload in
*denied.txt*) echo '{"decision": "deny", "reason": "REASON-GUARD this command is not for today"}' ;;
esac
