"""Tests NAME.py as anyhook starts it."""

import json
import subprocess
import sys
import unittest
from pathlib import Path

HOOK = Path(__file__).with_name("NAME.py")


def decision(command: str) -> "str | None":
    event = {
        "event": "before_tool_execute",
        "source": "test",
        "data": {"tool_name": "shell", "tool_input": {"command": command}},
    }
    run = subprocess.run(
        [sys.executable, HOOK], input=json.dumps(event), capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)["decision"] if run.stdout else None


class Test(unittest.TestCase):
    def test_decisions(self) -> None:
        for command, expected in [
            ("git push --force", "deny"),
            ("git push -f origin main", "deny"),
            ("git push", None),
            ("ls", None),
        ]:
            with self.subTest(command):
                self.assertEqual(decision(command), expected)


if __name__ == "__main__":
    unittest.main()
