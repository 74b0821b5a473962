#!/bin/sh
# 35 MB that are no answer.
case $(cat) in
*flood.txt*) yes 'a line of a log that somebody forgot to switch off' | head -c 35000000 ;;
esac
