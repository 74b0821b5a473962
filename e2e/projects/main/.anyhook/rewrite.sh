#!/bin/sh
case $(cat) in
*original.txt*) echo '{"updated_input": {"command": "echo changed > rewritten.txt"}}' ;;
esac
