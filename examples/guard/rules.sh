#!/bin/sh
# Adds a sentence to what the model knows.
cat >/dev/null
echo '{"context": "Delete nothing that is not under version control."}'
