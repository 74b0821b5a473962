@echo off
rem Denies a recursive, forced delete. The event is one JSON object on stdin; to
rem deny, say why on stderr and exit with 2.
"%SystemRoot%\System32\findstr.exe" /c:"rm -rf" /c:"rm -fr" /c:"rm -r -f" /c:"rm -f -r" >nul
if errorlevel 1 exit /b 0
echo rm -rf is not allowed here: move the files to a trash folder 1>&2
exit /b 2
