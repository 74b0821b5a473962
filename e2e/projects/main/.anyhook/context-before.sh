#!/bin/sh
case $(cat) in
*probe.txt*) echo '{"context": "CONTEXT-BEFORE this house is blue"}' ;;
esac
