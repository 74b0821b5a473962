#!/bin/sh
# context.sh NAME [TEXT]: gives context, if TEXT is in the payload.
payload=$(cat)
case $payload in
*"${2-}"*)
    echo run >> "$HOME/context-$1"
    printf '{"context": "CONTEXT-%s this house is blue"}' "$1"
    ;;
esac
