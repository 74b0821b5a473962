#!/bin/sh
# The process id makes every context a different one.
cat > /dev/null
case $1 in
# Some clients take it for a reason to go on working, again and again.
*_stop) mkdir "$HOME/context-$1" 2> /dev/null || exit 0 ;;
esac
printf '{"context": "CONTEXT-%s-%s-END"}' "$1" $$
