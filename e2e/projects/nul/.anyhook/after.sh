#!/bin/sh
# Counts the calls whose command has a NUL in its output.
case $(cat) in
*with-nul*) echo run >> "$HOME/after-runs" ;;
esac
