@echo off
rem A PreToolUse hook for Claude Code: its payload on stdin, its answer on stdout.
"%SystemRoot%\System32\find.exe" "git push --force" >nul
if errorlevel 1 exit /b 0
echo {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "git push --force-with-lease"}}}
