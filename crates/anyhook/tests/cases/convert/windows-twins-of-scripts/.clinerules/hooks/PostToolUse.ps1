Write-Output hi
