@echo off
rem Adds a sentence to what the model knows.
echo {"context": "Delete nothing that is not under version control."}
