#!/bin/sh
case $(cat) in
*PROMPT-BLOCKED*) echo '{"decision": "deny", "reason": "REASON-PROMPT ask for something else"}' ;;
esac
