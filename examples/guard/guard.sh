#!/bin/sh
# Denies a recursive, forced delete. The event is one JSON object on stdin; to
# deny, say why on stderr and exit with 2.
event=$(cat)
case $event in
*'rm -rf'* | *'rm -fr'* | *'rm -r -f'* | *'rm -f -r'*)
    echo 'rm -rf is not allowed here: move the files to a trash folder' >&2
    exit 2
    ;;
esac
