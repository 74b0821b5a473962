#!/bin/sh
# Takes its time, as guards do: a limit in the wrong unit ends it before it has answered.
case $(cat) in
*denied.txt*)
    sleep 1
    echo '{"decision": "deny", "reason": "REASON-DENY this command is not for today"}'
    ;;
esac
