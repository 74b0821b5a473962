#!/bin/sh
case $(cat) in
*-denied.txt*) echo '{"decision": "deny", "reason": "REASON-CALL this command is not for today"}' ;;
esac
