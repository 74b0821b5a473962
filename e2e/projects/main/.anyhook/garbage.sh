#!/bin/sh
case $(cat) in
*garbage.txt*) printf 'this is { no "JSON" \001\n' ;;
esac
