@echo off
rem The event is one JSON object on stdin, the same for every agent. To deny,
rem print the reason to stderr and exit with 2.
"%SystemRoot%\System32\find.exe" "rm -rf" >nul
if errorlevel 1 exit /b 0
echo rm -rf is not allowed here: move it to the trash 1>&2
exit /b 2
