// NAME: denies a forced push. Change check to your rule, then run the test:
//
//	go test NAME.go NAME_test.go
//
// The event comes as JSON on stdin, the answer goes to stdout as JSON; no answer means
// no objection. Print debug text to stderr. Another exit code is a failure of the
// hook: `on_failure: block` in the manifest denies the call then.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

type event struct {
	Event string `json:"event"`
	Data  struct {
		ToolName  string         `json:"tool_name"`
		ToolInput map[string]any `json:"tool_input"`
	} `json:"data"`
}

// check returns the reason to deny, or nothing.
func check(e event) string {
	command, _ := e.Data.ToolInput["command"].(string)
	push, force := false, false
	for _, word := range strings.Fields(command) {
		push = push || word == "push"
		force = force || word == "--force" || word == "-f"
	}
	if push && force {
		return "NAME: a forced push can remove the work of others"
	}
	return ""
}

func main() {
	var e event
	if err := json.NewDecoder(os.Stdin).Decode(&e); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if reason := check(e); reason != "" {
		answer := map[string]string{"decision": "deny", "reason": reason}
		if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
			os.Exit(1)
		}
	}
}
