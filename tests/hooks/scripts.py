"""Hooks as people write them, as files in a folder of a test."""

from pathlib import Path

DENY_RM = '''\
#!/usr/bin/env python3
"""A PreToolUse hook for Claude Code: no recursive removal."""
import json
import re
import sys

call = json.load(sys.stdin)
command = call.get("tool_input", {}).get("command", "")
if call["tool_name"] == "Bash" and re.search(r"\\brm\\s+-\\w*r", command):
    print(json.dumps({
        "hookSpecificOutput": {
            "hookEventName": call["hook_event_name"],
            "permissionDecision": "deny",
            "permissionDecisionReason": "Removing folders is not done here.",
        }
    }))
'''

FORMAT = """\
#!/usr/bin/env bash
# A PostToolUse hook for Claude Code without jq: strips blanks at the ends of lines.
set -euo pipefail
file=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["tool_input"]["file_path"])')
cd "$CLAUDE_PROJECT_DIR"
sed -i 's/[[:space:]]*$//' "$file"
echo '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "Formatted."}}'
"""

TESTS_FIRST = """\
#!/usr/bin/env bash
# A Stop hook for Claude Code: the turn goes on until a file is there.
input=$(cat)
case "$input" in *'"stop_hook_active": true'*) exit 0 ;; esac
[ -e tested ] && exit 0
echo "Run the tests before you stop." >&2
exit 2
"""


def script(folder: Path, name: str, text: str) -> Path:
    """Write an executable and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o700)
    return path
