#!/bin/sh
case $(cat) in
*counted.txt*) echo run >> "$HOME/guard-runs" ;;
*denied.txt*)
    echo run >> "$HOME/deny-runs"
    echo '{"decision": "deny", "reason": "REASON-BOTH this command is not for today"}'
    ;;
esac
