#!/bin/sh
case $(cat) in
*probe.txt*) echo '{"context": "CONTEXT-AFTER this house is blue"}' ;;
esac
