#!/bin/sh
# fail.sh HOW: fails in that way, for the file of that name.
case $(cat) in
*"$1.txt"*) ;;
*) exit 0 ;;
esac
case $1 in
hang) sleep 600 ;;
crash) kill -ABRT $$ ;;
exit) exit 3 ;;
garbage) printf 'this is { no "JSON" \001\n' ;;
flood) yes 'a line of a log that somebody forgot to switch off' | head -c 35000000 ;;
esac
