#!/bin/sh
case $(cat) in
*note-denied*) echo '{"decision": "deny", "reason": "REASON-MCP this note is not for today"}' ;;
*note-original*) echo '{"updated_input": {"text": "note-changed"}}' ;;
esac
