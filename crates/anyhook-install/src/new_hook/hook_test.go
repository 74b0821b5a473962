package main

import "testing"

func TestCheck(t *testing.T) {
	for command, denied := range map[string]bool{
		"git push --force":        true,
		"git push -f origin main": true,
		"git push":                false,
		"ls":                      false,
	} {
		var e event
		e.Data.ToolInput = map[string]any{"command": command}
		if got := check(e) != ""; got != denied {
			t.Errorf("%q: denied %v, expected %v", command, got, denied)
		}
	}
}
