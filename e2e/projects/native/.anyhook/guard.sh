#!/bin/sh
# Needs no form of payload: it looks for a word, and denies by exit 2.
case $(cat) in
*denied.txt*)
    echo 'REASON-NATIVE this command is not for today' >&2
    exit 2
    ;;
esac
